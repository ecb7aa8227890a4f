// How the pages speak with askbook's API: JSON, and the events of an answer.

/** What went wrong, in the API's own words: `error`, `message`, `detail`, `status`. */
export class Problem extends Error {
  constructor(body, status) {
    super(body.message || "askbook did not answer");
    Object.assign(this, { error: body.error || "unknown_error", detail: body.detail || null, status, seconds: body.seconds });
  }
}

const OFFLINE = { error: "offline", message: "askbook cannot be reached", detail: "Is the server running? Check your connection, then try again." };

async function send(address, request) {
  let response;
  try {
    response = await fetch(address, request);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(OFFLINE, 0);
  }
  if (response.ok) return response;
  const body = await response.json().catch(() => ({}));
  throw new Problem({ ...body, seconds: Number(response.headers.get("Retry-After")) || null }, response.status);
}

/** One call: its JSON, or null where there is none. */
export async function call(address, { method = "GET", body, headers = {}, signal } = {}) {
  const type = body === undefined ? {} : { "Content-Type": "application/json" };
  const response = await send(address, { method, signal, headers: { ...type, ...headers }, body: body && JSON.stringify(body) });
  return response.status === 204 ? null : response.json();
}

/**
 * Asks, and follows the answer. `on` has a function for each event it wants: tool_call, retrieval, content, done.
 * Gives back what `done` told; throws a Problem, or an AbortError when `signal` said so.
 */
export async function askStream({ endpoint = "", headers = {}, body, signal, on = {} }) {
  const response = await send(`${endpoint}/chat/stream`, {
    method: "POST",
    headers: { "Content-Type": "application/json", ...headers },
    // Readers are shown what is of low confidence as well, with its disclaimer.
    body: JSON.stringify({ similarity_threshold: 0, ...body }),
    signal,
  });
  for await (const { event, data } of readEvents(response.body, signal)) {
    if (event === "error") throw new Problem(data, data.status_code);
    on[event]?.(data);
    if (event === "done") return data;
  }
  throw new Problem({ error: "unknown_error", message: "the answer broke off", detail: "Ask again." }, 0);
}

async function* readEvents(stream, signal) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let waiting = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const parts = (waiting + value).split(/\r?\n\r?\n/);
      waiting = parts.pop();
      for (const part of parts) {
        const event = readEvent(part);
        if (event) yield event;
      }
    }
  } catch (error) {
    throw signal?.aborted || error.name === "AbortError" ? error : new Problem(OFFLINE, 0);
  } finally {
    reader.cancel().catch(() => {});
  }
}

function readEvent(part) {
  const lines = part.split(/\r?\n/).map((line) => line.match(/^(event|data): ?(.*)$/)).filter(Boolean);
  const of = (name) => lines.filter((line) => line[1] === name).map((line) => line[2]).join("\n");
  return of("data") ? { event: of("event") || "message", data: JSON.parse(of("data")) } : null;
}
