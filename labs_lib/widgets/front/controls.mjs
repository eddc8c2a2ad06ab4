// Named controls. Each is reached by the Tab key and moved by the keys of its kind; the attribute
// on the element itself keeps JupyterLab's shortcuts from taking them.

let _made = 0;

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== false) made.setAttribute(name, value);
  }
  made.append(...children);
  if (["input", "select", "button"].includes(tag)) {
    made.setAttribute("data-lm-suppress-shortcuts", "true");
  }
  return made;
}

function button(words, does, label) {
  const attributes = { type: "button", onclick: does, onkeydown: on_enter(does) };
  return element("button", { ...attributes, "aria-label": label }, words);
}

// JupyterLab leaves nothing of Enter to the browser, which would press the button or take the number.
function on_enter(does) {
  return (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    event.stopPropagation();
    does();
  };
}

// A control of `knob` {kind, name, meaning, low, high, step, options}; `move(value)` is called when
// it is moved. Gives {root, first, show(value), limit(low, high), still()}; a list offer(options), too.
function control(knob, move) {
  const kinds = { slider, choice, tick, steps, text: text_line };
  return kinds[knob.kind](knob, move);
}

function slider(knob, move) {
  const id = `labs-control-${Date.now().toString(36)}-${_made++}`;
  const edges = { min: knob.low, max: knob.high, step: knob.step };
  const range = element("input", {
    ...edges, id, type: "range", oninput: () => move(Number(range.value)),
  });
  const typed = element("input", {
    ...edges, type: "number", "aria-label": `${knob.name}, typed`,
    onchange: type, onkeydown: on_enter(type),
  });
  let shown = knob.low;
  function type() {
    const low = Number(range.min);
    const steps = Math.round((Number(typed.value) - low) / knob.step);
    const value = Number((low + steps * knob.step).toFixed(6));
    if (typed.value === "" || !Number.isFinite(value)) typed.value = shown;
    else move(Math.min(Number(range.max), Math.max(low, value)));
  }
  const label = element("label", { for: id, title: `${knob.name}: ${knob.meaning}` }, knob.name);
  return {
    root: element("div", { class: "labs-control" }, label, range, typed),
    first: range,
    show(value) {
      shown = value;
      range.value = value;
      typed.value = value;
      range.setAttribute("aria-valuetext", `${value} (${knob.meaning})`);
    },
    limit(low, high) {
      for (const input of [range, typed]) [input.min, input.max] = [low, high];
    },
    still() {},
  };
}

function choice(knob, move) {
  const id = `labs-control-${Date.now().toString(36)}-${_made++}`;
  let options = [];
  const list = element("select", { id, onchange: () => move(options[list.value][1]) });
  function offer(wanted) {
    if (JSON.stringify(wanted) === JSON.stringify(options)) return;
    options = wanted;
    list.replaceChildren(...options.map(([words], i) => element("option", { value: i }, words)));
  }
  offer(knob.options);
  const label = element("label", { for: id, title: `${knob.name}: ${knob.meaning}` }, knob.name);
  return {
    root: element("div", { class: "labs-control" }, label, list),
    first: list,
    offer,
    show: (value) => (list.value = options.findIndex((option) => option[1] === value)),
    limit() {},
    still() {},
  };
}

function tick(knob, move) {
  const box = element("input", { type: "checkbox", onchange: () => move(box.checked) });
  return {
    root: element("label", { class: "labs-control labs-tick" }, box, knob.meaning),
    first: box,
    show: (value) => (box.checked = value),
    limit() {},
    still() {},
  };
}

function text_line(knob, move) {
  const id = `labs-control-${Date.now().toString(36)}-${_made++}`;
  const plain = { type: "text", autocomplete: "off", spellcheck: "false" };
  const box = element("input", { ...plain, id, oninput: () => move(box.value) });
  const label = element("label", { for: id, title: `${knob.name}: ${knob.meaning}` }, knob.name);
  return {
    root: element("div", { class: "labs-control labs-text" }, label, box),
    first: box,
    show(value) {
      if (box.value !== value) box.value = value; // else the caret would go to the end
    },
    limit() {},
    still() {},
  };
}

// A slider with buttons to play it: first, back, play, on, last. Who asks for less motion is shown
// the last step at once.
function steps(knob, move) {
  const inner = slider(knob, (value) => (still(), move(value)));
  const range = inner.first;
  const at = () => [Number(range.value), Number(range.min), Number(range.max)];
  let timer = null;
  const go = (value) => (still(), move(value));
  const play = button("play", () => (timer === null ? start() : still()));
  function still() {
    clearInterval(timer);
    timer = null;
    play.textContent = "play";
  }
  function start() {
    const [now, low, high] = at();
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) return move(high);
    if (now >= high) move(low);
    play.textContent = "pause";
    timer = setInterval(() => {
      const [value, , last] = at();
      if (value >= last) still();
      else move(value + knob.step);
    }, knob.pace ?? 700);
  }
  const named = (words, value) => button(words, () => go(value()), `${knob.name}: ${words}`);
  const buttons = [
    named("first", () => at()[1]),
    named("back", () => Math.max(at()[1], at()[0] - knob.step)),
    play,
    named("on", () => Math.min(at()[2], at()[0] + knob.step)),
    named("last", () => at()[2]),
  ];
  const row = element("div", { class: "labs-steps", role: "group", "aria-label": `play ${knob.name}` });
  row.append(inner.root, ...buttons);
  return { ...inner, root: row, still };
}
