// Read before anything is drawn, so that a page never flashes in the other colours. Not a module: modules wait.
(() => {
  try {
    const chosen = localStorage.getItem("askbook-theme");
    if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  } catch {
    // A browser that keeps nothing goes by the system's colours.
  }
})();
