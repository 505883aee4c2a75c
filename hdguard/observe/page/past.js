"use strict";
/* What was: the timeline, the halts, and how long each stage took. Loaded before page.js, which
   calls these functions and whose `make`, `put`, `list` and `span` they use. */

const WORDS = { G: "GREEN", Y: "YELLOW", R: "RED", s: "stale or unknown", "-": "no verdict yet" };
const STATES = { M: "watching", V: "reviewing", H: "halted", W: "starting" };
const SVG = "http://www.w3.org/2000/svg";
const SHORTEST_PAST = 15; // s that the timeline shows at least; a guard that has just begun has few

function runs(letters) {
  // [letter, from, to) of every stretch of one letter
  const found = [];
  for (let from = 0, to; from < letters.length; from = to) {
    for (to = from + 1; letters[to] === letters[from]; to += 1);
    if (letters[from] !== " ") found.push([letters[from], from, to]);
  }
  return found;
}

function strip(letters) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", `0 0 ${letters.length} 14`);
  svg.setAttribute("preserveAspectRatio", "none");
  for (const [letter, from, to] of runs(letters)) {
    // A RED stands higher than a YELLOW and that than a GREEN: not by colour alone.
    const tall = { R: 14, H: 14, s: 10, Y: 10, V: 10, "-": 2 }[letter] ?? 6;
    const rect = document.createElementNS(SVG, "rect");
    const place = { x: from, y: 14 - tall, width: to - from, height: tall };
    for (const [name, value] of Object.entries(place)) rect.setAttribute(name, value);
    rect.setAttribute("class", `l-${letter}`);
    svg.append(rect);
  }
  return svg;
}

let drawn = "";

function showTimeline({ seconds: length, state, lights, halts }) {
  const words = JSON.stringify([state, lights]);
  if (words === drawn) return; // it moves once a second
  drawn = words;
  const all = [["guard", state, STATES], ...Object.entries(lights).map(([n, r]) => [n, r, WORDS])];
  const known = Math.max(...all.map(([, letters]) => letters.trimStart().length));
  const past = Math.min(length, Math.max(SHORTEST_PAST, known));
  const rows = all.map(([name, letters, names]) => [name, letters.slice(-past), names]);
  const long = past < 120 ? `${past} s` : `${Math.ceil(past / 60)} min`;
  put($("timeline-title"), past < length ? `The last ${long}` : "The last five minutes");
  put($("began"), `${long} ago`);
  const marks = make("div", "marks");
  for (const halt of halts.filter((each) => each.age < past)) {
    const mark = make("b", "", "▼");
    mark.style.left = `${100 - (100 * halt.age) / past}%`;
    mark.title = halt.halt_id;
    marks.append(mark);
  }
  $("timeline").replaceChildren(marks, ...rows.flatMap(([name, letters, names]) =>
    [make("span", "", name), strip(letters)]));
  const spoken = rows.map(([name, letters, names]) => `${name}: ${tell(letters, names)}`).join(". ");
  $("timeline").setAttribute("aria-label", spoken);
  put($("timeline-words"), `${spoken}.`);
}

function tell(letters, names) {
  const count = {};
  for (const letter of letters) if (letter !== " ") count[letter] = (count[letter] ?? 0) + 1;
  const found = Object.entries(count).sort(([, a], [, b]) => b - a);
  return found.map(([letter, n]) => `${names[letter]} ${n} s`).join(", ") || "nothing yet";
}

function showHalts(halts, demo) {
  put($("halts-title"), demo ? "The clips so far" : "Halts since the guard started");
  const told = halts.map((halt) => {
    const from = halt.restored ? "from before the guard's start" : `${span(halt.age)} ago`;
    const long = halt.restored ? from : `for ${span(halt.age)}`;
    const when = halt.lasted === null ? `in force ${long}`
      : `${from}, lasted ${halt.restored ? "on for " : ""}${span(halt.lasted)}`;
    const todo = halt.what_to_do && !demo ? ` ${halt.what_to_do}` : "";
    return `${halt.halt_id} · ${halt.class}, ${halt.cause} · ${when}: ${halt.because}.${todo}`;
  }).concat(demo ? demo.earlier : []);
  list($("halts"), told.length ? told : ["None."]);
}

// Latency.

function showLatency({ brains, halt }) {
  const total = (stages) => Object.values(stages).reduce((sum, s) => sum + s, 0);
  const bars = brains.flatMap(({ name, newest, count, p50, p95, whole }) =>
    [[`${name}, newest`, newest, total(newest)]].concat(count === 0 ? [] // none in a minute
      : [[`${name}, median of ${count}`, p50, whole.p50],
        [`${name}, 95 % of ${count} within`, p95, whole.p95]]));
  if (halt) {
    const stages = { decide: halt.decide, deliver: halt.deliver };
    const far = halt.deliver === null ? "decided, not delivered" : "delivered";
    bars.push([`halt ${halt.halt_id}, ${far}`, stages, total(stages)]);
  }
  const longest = Math.max(0.001, ...bars.map(([, stages]) => total(stages)));
  const ms = (s) => `${Math.round(s * 1000)} ms`;
  $("latency").replaceChildren(...bars.flatMap(([name, stages, whole]) => {
    const parts = Object.entries(stages).map(([stage, s]) => {
      const part = make("i", `s-${stage}`);
      part.style.width = `${(100 * s) / longest}%`;
      return part;
    });
    const words = Object.entries(stages).filter(([, s]) => s !== null)
      .map(([stage, s]) => `${stage} ${ms(s)}`).join(", ");
    return [make("h3", "", `${name}: ${ms(whole)}`), make("div", "bar", ...parts),
      make("p", "hint", words)];
  }));
}
