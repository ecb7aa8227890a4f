// Questions to begin with, made from the titles of the book's own lessons.

const ASKING = /^(what|how|why|when|where|which|who|can|is|are|does|do|should)\b|\?$/i;
const DULL = /^(introduction|overview|summary|conclusions?|exercises?|quiz|exam|review|references|resources|further reading|next steps?|prerequisites|appendix|glossary|contents|index|preface|foreword|about|welcome)\b/i;
const WORDINGS = [
  (topic) => `What should I know about ${topic}?`,
  (topic) => `Explain ${topic}.`,
  (topic) => `Tell me about ${topic}.`,
];

export function suggestQuestions(contents, count = 4) {
  const lessons = contents.modules.flatMap((module) => module.chapters.flatMap((chapter) => chapter.lessons));
  // An overview has the name of its folder; it is asked about only where there is nothing else.
  const taught = lessons.filter((one) => one.lesson > 0 && !DULL.test(one.title));
  const titles = [...new Set((taught.length ? taught : lessons).map((one) => one.title))];
  // From all over the book, so that they show what it holds.
  const step = Math.max(1, titles.length / count);
  return titles.filter((_, at) => Math.floor(at / step) !== Math.floor((at - 1) / step)).slice(0, count).map(toQuestion);
}

function toQuestion(title, turn) {
  const topic = title.replace(/[.:!\s]+$/, "");
  if (ASKING.test(topic)) return `${topic.replace(/^how to /i, "How do I ").replace(/\?$/, "")}?`;
  return WORDINGS[turn % WORDINGS.length](topic);
}
