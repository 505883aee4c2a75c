"use strict";
/* The status page: shows what the guard says and how old that is, and carries an operator's orders.

   Ages are this page's own business. A report says when it was made on the guard's clock; the
   quickest delivery of the last half minute tells how the two clocks stand to each other, so that
   whatever is late, by whatever hand, shows as old. All words that come from the guard are set as
   text: some of them are a model's. */

const SILENT = 1.5; // s without news after which the page says that it is blind
const REOPEN = 3; // s of silence after which the connection is given up and made again
const REMEMBER = 30; // s for which a quick delivery counts
const PICTURE_EVERY = 0.5; // s between two pictures of a camera, more if many look
const PICTURES_PER_SECOND = 20; // of all viewers together: what the guard answers
const PICTURE_LATE = 1; // s that a picture may be older than the guard's newest one
// What HomeSafe-Bench's letters stand for.
const KINDS = {
  __proto__: null, C1: "cutting and puncture", C2: "blunt and crushing",
  C3: "heat, chemistry, electric", C4: "environmental damage", L1: "minor", L2: "needs treatment",
  L3: "hospital or emergency", L4: "life-threatening or major property loss",
};
const SIGNS = { watching: "✓", careful: "!", halted: "■", "not watching": "?", "between clips": "…" };

const $ = (id) => document.getElementById(id);
const seconds = () => performance.now() / 1000;

let source = null; // the EventSource
let report = null; // the newest one
let heard = seconds(); // when it came, on this page's clock
let opened = 0; // when the connection was last asked for
let deliveries = []; // [when it came, by how much this clock is ahead of the guard's then]
const cards = new Map(); // camera -> its elements and its picture

function make(tag, className, ...children) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...children); // strings become text nodes, never markup
  return element;
}

function put(element, text) {
  // Only what changed, or screen readers would hear everything four times a second.
  if (element.textContent !== text) element.textContent = text;
}

// Time.

const guardNow = () => seconds() - Math.min(...deliveries.map(([, ahead]) => ahead));

function span(s) {
  if (s < 10) return `${s.toFixed(1)} s`;
  if (s < 120) return `${Math.round(s)} s`;
  if (s < 7200) return `${Math.round(s / 60)} min`;
  return `${Math.round(s / 3600)} h`;
}

const since = (age) => age + guardNow() - report.now; // what was so old then is so old now

// Listening.

function listen() {
  source?.close();
  opened = seconds();
  source = new EventSource("/api/v1/events");
  source.onmessage = (event) => take(JSON.parse(event.data));
}

function take(news) {
  const at = seconds();
  const again = report && (report.boot !== news.boot || news.now < report.now - 1);
  if (again) { // another guard, perhaps another clock
    deliveries = [];
    for (const card of cards.values()) forget(card);
  }
  deliveries = deliveries.filter(([when]) => at - when < REMEMBER);
  deliveries.push([at, at - news.now]);
  report = news;
  show();
  heard = at; // not before: what cannot be shown was not heard
  tick();
}

function tick() {
  // Runs also when nothing comes: what is shown grows old by itself.
  const quiet = seconds() - heard;
  const lost = quiet >= SILENT;
  $("lost").hidden = !lost;
  if (lost) {
    const advice = report?.here.demo ? "The demo has ended: its scores stand in the terminal."
      : "If in doubt, use the robot's own stop.";
    put($("lost-what"), `No connection to the guard. ${advice}`);
    put($("lost-since"), report ? `The last word came ${span(quiet)} ago; all below is old.` : "");
    document.body.dataset.mood = "unknown";
    put($("headline"), report ? `Last heard: ${report.headline}` : "Nothing was heard yet.");
    put($("sign"), "?");
    put($("mood"), "Not connected");
    put($("facts"), ""); // nothing was heard "0.1 s ago"
    document.title = "? not connected – hdguard";
    if (quiet > REOPEN && seconds() - opened > REOPEN) listen();
  }
  if (report) for (const camera of report.sources) age(camera, lost);
}

// What the guard is doing.

function show() {
  const { demo } = report.here;
  const waits = demo?.over && !report.halt; // between two clips no guard is at work
  const mood = waits ? "between clips" : report.mood;
  document.body.dataset.mood = mood;
  put($("sign"), SIGNS[mood]);
  put($("mood"), mood);
  put($("headline"), waits ? demo.title : report.headline);
  document.title = `${SIGNS[mood]} ${mood} – hdguard`;
  const robot = report.robot
    ? `Robot: ${report.robot.moving ? "moving" : "standing"}, heard ${span(report.robot.age)} ago`
    : "Robot: not heard";
  put($("facts"), demo?.over ? "" : `State ${report.state} · speed ${report.speed} · ${robot}`);
  put($("about"), `Guard ${report.boot}, running for ${span(report.running)}. ${report.here.viewers}
    looking on. hdguard is not a certified safety function.`.replace(/\s+/g, " "));
  list($("warnings"), report.warnings);
  $("stop").disabled = !report.here.halt;
  if (!report.here.halt) put($("answer"), "Halting from here is off: set http.token.");
  $("demo").hidden = !demo;
  $("operator").hidden = Boolean(demo); // there is nothing to operate
  if (demo) put($("demo-title"), demo.title);
  showHalt(report.halt);
  for (const camera of report.sources) showCamera(camera);
  for (const [name, card] of cards) {
    if (report.sources.some((camera) => camera.name === name)) continue;
    card.box.remove(); // in a demo, one video's cameras follow another's
    cards.delete(name);
  }
  showTimeline(report.timeline);
  showHalts(report.timeline.halts, demo);
  showLatency(report.latency);
}

function list(element, texts) {
  if (element.childElementCount === texts.length &&
      texts.every((text, n) => element.children[n].textContent === text)) return;
  element.replaceChildren(...texts.map((text) => make("li", "", text)));
}

function showHalt(halt) {
  $("halt").hidden = !halt;
  if (!halt) return;
  const howLong = halt.restored ? "since before this guard was started" : `for ${span(halt.age)}`;
  put($("halt-title"), `■ Halted ${howLong}`);
  const real = report.here.demo ? "Beside a real robot: " : "";
  put($("halt-todo"), real + halt.what_to_do);
  const reached = halt.confirmed ? "the robot stands still" : halt.acknowledged
    ? "the robot has it and is stopping" : halt.delivered
      ? "the broker has it; the robot has not answered" : "not delivered yet";
  const latched = halt.latched ? ", latched: only a reset ends it" : "";
  const late = halt.escalated ? "; it took so long that an alarm was raised" : "";
  const facts = [`Halt ${halt.halt_id}, ${halt.class}, ${halt.cause}${latched}`, `Reached: ${reached}${late}`];
  const hazard = sayHazard(halt.hazard);
  if (hazard && halt.class === "danger") facts.push(`Hazard: ${hazard}`);
  if (report.unready.length) facts.push(`Not watching as it should: ${report.unready.join("; ")}`);
  list($("halt-facts"), facts);
  $("reset").hidden = !report.here.reset;
  put($("reset"), `Reset halt ${halt.halt_id} …`);
}

// Cameras.

function cardOf(name) {
  if (cards.has(name)) return cards.get(name);
  const image = make("img", "");
  image.alt = `Newest picture of ${name}`;
  image.hidden = true;
  const card = {
    image, none: make("p", "none", "No picture yet"), age: make("span", "age"),
    stale: make("span", ""), staleWhy: make("small", ""),
    light: make("span", "light", make("i", ""), make("span", "")),
    brains: make("ul", "said"), review: make("p", "review"),
    capturedAt: null, wanted: 0, asking: null, url: "",
  };
  const stale = make("div", "stale-word", card.stale, card.staleWhy);
  card.staleWhy.setAttribute("role", "status"); // the age beside it would be read out for ever
  const title = make("h2", "title", make("b", "", name), card.light);
  const words = make("div", "words", title, card.brains, card.review);
  card.box = make("article", "camera", make("div", "shot", image, card.none, stale, card.age), words);
  card.box.setAttribute("aria-label", `Camera ${name}`);
  $("cameras").append(card.box);
  cards.set(name, card);
  return card;
}

function showCamera(camera) {
  const card = cardOf(camera.name);
  const light = camera.light || "no verdict";
  card.light.className = `light ${light}`;
  put(card.light.lastChild, light);
  const said = report.brains.filter((brain) => brain.source === camera.name).map(sayBrain);
  if (camera.trouble) said.unshift(`Lost: ${camera.trouble}`);
  if (camera.reviewed) {
    const was = camera.reviewed;
    said.push(`${report.slow ? report.slow.name : "Review"}, ${span(was.age)} ago: ${sayHazard(was)}`);
  }
  list(card.brains, said);
  card.review.hidden = !camera.review;
  if (camera.review) {
    const { age: asked, due_in: due } = camera.review;
    put(card.review, `◆ Review in progress for ${span(asked)}, ` +
      (due >= 0 ? `due in ${span(due)}` : `overdue by ${span(-due)}`));
  }
  fetchPicture(camera, card);
}

function sayBrain(brain) {
  if (!brain.up) return `${brain.name}: down, being restarted`;
  if (!brain.said) return `${brain.name}: no verdict yet`;
  const old = brain.fresh ? "" : ` (${span(brain.verdict_age ?? brain.said.age)} old)`;
  return `${brain.name}: ${sayHazard(brain.said)}${old}`;
}

function sayHazard(said) {
  const kinds = [said.category, said.severity].map((code) =>
    KINDS[code] ? `${code} (${KINDS[code]})` : code);
  return [said.said, said.text, ...kinds].filter(Boolean).join(" · ");
}

function age(camera, lost) {
  const card = cards.get(camera.name);
  const newest = camera.frame_age === null ? null : since(camera.frame_age);
  const picture = card.capturedAt === null ? null : guardNow() - card.capturedAt;
  const limit = camera.stale_after;
  let why = "";
  if (lost) why = "no word from the guard";
  else if (report.here.demo?.over) why = ""; // the last picture of a clip is meant to stay
  else if (newest !== null && newest >= limit) why = "no new picture comes from this camera";
  else if (picture !== null && picture >= limit + PICTURE_LATE + pause()) {
    why = "newer pictures do not get here";
  }
  const shown = picture ?? newest;
  card.box.classList.toggle("stale", why !== "");
  const unsure = why !== "" || (!camera.sure && camera.light !== "RED"); // a RED stays one
  card.light.classList.toggle("was", camera.light !== null && unsure);
  put(card.age, shown === null ? "no picture yet" : `${span(Math.max(0, shown))} old`);
  put(card.stale, why ? `STALE${shown === null ? "" : ` ${span(shown)}`}` : "");
  put(card.staleWhy, why);
}

function forget(card) {
  // Another guard's picture has an age on another clock: nobody could say how old it is.
  card.capturedAt = null;
  card.image.hidden = true;
  card.none.hidden = false;
  put(card.none, "No picture yet");
}

function pause() {
  const asked = report.here.viewers * report.sources.length;
  return Math.max(PICTURE_EVERY, asked / PICTURES_PER_SECOND);
}

async function fetchPicture(camera, card) {
  const capturedAt = camera.frame_age === null ? null : report.now - camera.frame_age;
  const lacking = { open: "", none: "Pictures are not shown here.",
    token: $("token").value ? "" : "Pictures need the operator's token: enter it below." };
  if (lacking[report.here.pictures]) put(card.none, lacking[report.here.pictures]);
  if (card.asking || lacking[report.here.pictures] || seconds() < card.wanted) return;
  if (capturedAt === null || capturedAt <= card.capturedAt + 0.002) return; // the same one
  const asking = card.asking = new AbortController();
  const limit = setTimeout(() => asking.abort(), 5000);
  card.wanted = seconds() + pause();
  const { boot } = report;
  try {
    const path = `/api/v1/cameras/${encodeURIComponent(camera.name)}/picture`;
    const reply = await fetch(path, { headers: orders(), signal: asking.signal });
    const blob = reply.ok ? await reply.blob() : null;
    if (blob && report.boot === boot) { // else it is another guard's
      if (card.url) URL.revokeObjectURL(card.url);
      card.url = card.image.src = URL.createObjectURL(blob);
      card.capturedAt = Number(reply.headers.get("X-Captured-At"));
      card.image.hidden = false;
      card.none.hidden = true;
    } else if (!blob && reply.status !== 429) put(card.none, await complaint(reply));
  } catch {
    // Its age says that it does not get here.
  }
  clearTimeout(limit);
  card.asking = null;
}

// Orders.

function orders() {
  const token = $("token").value;
  return token ? { Authorization: `Bearer ${token}` } : {};
}

async function complaint(reply) {
  if (reply.status === 401) return "Refused: it takes the operator's token.";
  try {
    return `Refused: ${(await reply.json()).error}.`;
  } catch {
    return `Refused with ${reply.status}.`;
  }
}

async function order(path, parameters, done) {
  if (!$("token").value) {
    put($("answer"), "Enter the operator's token first.");
    $("token").focus();
    return;
  }
  put($("answer"), "Asking …");
  // A browser has six connections for one guard: pictures must not hold them all.
  for (const card of cards.values()) card.asking?.abort();
  const query = new URLSearchParams({ ...parameters, operator: $("name").value });
  try {
    const options = { method: "POST", headers: orders(), signal: AbortSignal.timeout(5000) };
    const reply = await fetch(`${path}?${query}`, options);
    put($("answer"), reply.ok ? done(await reply.json()) : await complaint(reply));
  } catch {
    put($("answer"), "The guard does not answer. Use the robot's own stop.");
  }
}

// One click: a halt too many harms nobody.
$("stop").addEventListener("click", () => order("/api/v1/halt", {}, (said) =>
  `Halt ${said.halt.halt_id} is in force.`));
$("who").addEventListener("submit", (event) => event.preventDefault());

let asked = ""; // what the dialog is about: another halt may come while it is open
$("reset").addEventListener("click", () => {
  asked = report.halt.halt_id;
  put($("confirm-title"), `Reset halt ${asked}?`);
  put($("confirm-why"), report.halt.what_to_do);
  $("confirm").showModal();
});
$("cancel").addEventListener("click", () => $("confirm").close());
$("go").addEventListener("click", () => {
  $("confirm").close();
  order("/api/v1/reset", { halt_id: asked }, (said) =>
    `Halt ${said.released} is over: the robot may move again.`);
});

// A page that nobody sees gives its connection back: a browser has six for one guard.
document.addEventListener("visibilitychange", () => {
  if (document.hidden) source.close();
  else listen();
});
listen();
setInterval(tick, 100);
