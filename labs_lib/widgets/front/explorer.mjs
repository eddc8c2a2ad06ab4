// Puts an explorer together: controls, what doesn't fit and its way out, one picture, one sentence.
//
// explorer({height(width, s, model), draw(pen, s, model), ...}) gives what anywidget asks for. `s`
// holds the value of every control by name; draw returns the sentence, or throws. Optional parts:
//   rules: [s => null | {why, offers, width, parts, title, label}]   further than the pair's own
//   follow: {n_kv_head: "n_head"}   moves along as long as both are equal
//   limits(s, model): {step: [low, high]}  of a control, where other controls decide them
//   lists: {warp: (s, model) => [[words, value], ...]}   of a list, where a trace decides them
//   asks(s): whether Python has to run a student's function for this setting; its answer comes as
//     s.own {of, message, ...}, and draw is called with it once it is there
//   partial: true where draw also shows something before that, with s.own null
//   waits: what is said where Python doesn't answer
//   picks(at, s, model): {name: value} that a click at {x, y} in a picture of `width` chooses, or
//     null
//   reads(at, s, model): what the pointer stands on there, in words, or ""

const WIDEST = 1000;
const NARROWEST = 280;
const WAITING = "Python runs your function for this setting; without a kernel it can't.";
const POINT = "Point at a cell to read it; click to choose it.";

function explorer(spec) {
  return {
    render({ model, el }) {
      const shown = new Shown(spec, model, el);
      return () => shown.close();
    },
  };
}

class Shown {
  constructor(spec, model, el) {
    Object.assign(this, { spec, model, el, rev: 0, frame: 0, drawn: {} });
    this.knobs = model.get("knobs");
    this.name = model.get("title");
    this.build();
    this.listen();
    this.paint();
  }

  build() {
    this.controls = {};
    const row = element("div", { class: "labs-controls" });
    for (const knob of this.knobs) {
      const made = control(knob, (value) => this.move({ [knob.name]: value }));
      this.controls[knob.name] = made;
      row.append(made.root);
    }
    this.offers = element("div", { class: "labs-offers" });
    this.canvas = element("canvas", { role: "img" });
    this.status = element("p", { role: "status", class: "labs-sentence" });
    this.reading = element("p", { "aria-hidden": "true", class: "labs-reading" });
    const read = this.spec.reads ? [this.reading] : []; // the sentence says the same of what is chosen
    const parts = [row, this.offers, this.canvas, ...read, this.status];
    const onkeydown = (event) => this.leave(event);
    const section = { class: "labs-explorer", role: "group", "aria-label": this.name, onkeydown };
    this.root = element("div", section, ...parts);
    this.el.append(this.root);
  }

  listen() {
    this.again = () => this.later();
    for (const name of [...this.knobs.map((knob) => knob.name), "own"]) {
      this.model.on(`change:${name}`, this.again);
    }
    this.resized = new ResizeObserver(this.again);
    this.resized.observe(this.el);
    this.restyled = new MutationObserver(this.again);
    const attributeFilter = ["data-jp-theme-name", "data-jp-theme-light", "class"];
    this.restyled.observe(document.body, { attributes: true, attributeFilter });
    this.scheme = matchMedia("(prefers-color-scheme: dark)");
    this.scheme.addEventListener("change", this.again);
    if (this.spec.picks) this.point();
  }

  // A mouse or a finger chooses what the controls choose, too, and reads what it stands on.
  point() {
    const aside = () => this.read((this.at = null));
    this.canvas.addEventListener("pointermove", (event) => this.read((this.at = event)));
    this.canvas.addEventListener("pointerleave", aside);
    this.canvas.addEventListener("click", (event) => {
      const picked = this.under(event, this.spec.picks);
      if (picked) this.move(picked);
    });
  }

  // What `find` gives for the place of an event, where a picture is drawn; else null.
  under(event, find) {
    const { width } = this.drawn;
    if (!event || !this.seen) return null;
    const scale = width / this.canvas.clientWidth; // where the style sheet has made it smaller
    return find({ x: event.offsetX * scale, y: event.offsetY * scale, width }, this.seen, this.model);
  }

  read() {
    this.canvas.style.cursor = this.under(this.at, this.spec.picks) ? "pointer" : "";
    const words = this.under(this.at, this.spec.reads ?? (() => "")) || POINT;
    if (this.reading.textContent !== words) this.reading.textContent = words;
  }

  close() {
    this.model.off(null, this.again);
    for (const made of Object.values(this.controls)) made.still();
    this.resized.disconnect();
    this.restyled.disconnect();
    this.scheme.removeEventListener("change", this.again);
    cancelAnimationFrame(this.frame);
    clearTimeout(this.waiting);
  }

  values() {
    return Object.fromEntries(this.knobs.map(({ name }) => [name, this.model.get(name)]));
  }

  move(moved) {
    const before = this.values();
    for (const [name, leader] of Object.entries(this.spec.follow ?? {})) {
      if (leader in moved && before[name] === before[leader]) moved[name] = moved[leader];
    }
    for (const [name, value] of Object.entries(moved)) this.model.set(name, value);
    this.model.save_changes();
    this.later();
  }

  // Escape leads back to the notebook's cell; a number that was only half typed is forgotten.
  leave(event) {
    const cell = this.root.closest(".jp-Cell");
    if (event.key !== "Escape" || !cell) return;
    event.stopPropagation();
    this.settings();
    cell.focus();
  }

  // All moves before the next frame make one picture.
  later() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.paint();
    });
  }

  paint() {
    if (!this.el.isConnected) return; // the observer of its size calls again
    const room = Math.floor(this.root.clientWidth) || this.drawn.width || 700;
    const width = Math.min(WIDEST, Math.max(NARROWEST, room));
    const s = this.settings();
    clearTimeout(this.waiting);
    let sentence, wrong;
    try {
      [sentence, wrong] = this.picture(s, width);
    } catch (error) {
      const pen = new Pen(this.canvas, width, 60, theme_of(this.root));
      pen.text("no picture: see the sentence below", 12, 30);
      [sentence, wrong] = [`This setting raised ${error.name}: ${error.message}`, true];
    }
    this.say(sentence, wrong);
    this.drawn = { width };
    if (this.spec.picks) this.read();
    this.canvas.dataset.rev = ++this.rev;
  }

  settings() {
    const s = this.values();
    for (const [name, entries] of Object.entries(this.spec.lists ?? {})) {
      const options = entries(s, this.model);
      this.controls[name].offer(options);
      if (!options.some(([, value]) => value === s[name])) s[name] = options[0][1];
    }
    for (const [name, [low, high]] of Object.entries(this.spec.limits?.(s, this.model) ?? {})) {
      this.controls[name].limit(low, high);
      s[name] = Math.min(high, Math.max(low, s[name]));
    }
    for (const [name, made] of Object.entries(this.controls)) made.show(s[name]);
    return s;
  }

  // Draws what the settings say; gives the sentence, and whether something is wrong.
  picture(s, width) {
    const theme = theme_of(this.root);
    this.seen = null;
    const broken = this.misfit(s);
    this.offer(broken);
    if (broken) {
      this.paler = false;
      draw_split(new Pen(this.canvas, width, 150, theme), broken);
      return [`Not allowed: ${refusal(broken)}.`, true];
    }
    const asks = this.spec.asks?.(s, this.model);
    const own = asks && answers(this.model.get("own"), s) ? this.model.get("own") : null;
    if (asks && !own && !this.spec.partial) return this.wait(width, theme);
    this.paler = false;
    const pen = new Pen(this.canvas, width, this.spec.height(width, s, this.model), theme);
    if (own?.empty) {
      pen.text(own.empty, 12, 30);
      return [own.message, own.failed];
    }
    const sentence = this.spec.draw(pen, { ...s, own }, this.model);
    this.seen = { ...s, own };
    if (own) this.canvas.dataset.answered = this.rev;
    if (asks && !own) this.explain_later(sentence);
    return [sentence, own?.failed];
  }

  // Python is asked: what was there stays, paler. Where no answer comes, that is said after a while.
  wait(width, theme) {
    if (this.drawn.width !== width) new Pen(this.canvas, width, 60, theme);
    else if (!this.paler) {
      const on = this.canvas.getContext("2d");
      on.globalAlpha = 0.6;
      on.fillStyle = theme.paper;
      on.fillRect(0, 0, this.canvas.width, this.canvas.height);
    }
    this.paler = true;
    this.explain_later();
    return [this.status.textContent, false];
  }

  explain_later(sentence = "") {
    const words = [sentence, this.spec.waits ?? WAITING].filter(Boolean).join("\n");
    this.waiting = setTimeout(() => this.say(words, false), 400);
  }

  misfit(s) {
    for (const rule of [pair_rule, ...(this.spec.rules ?? [])]) {
      const broken = rule(s);
      if (broken) return { ...broken, offers: broken.offers.filter((way) => this.takes(...way)) };
    }
    return null;
  }

  offer(broken) {
    const wanted = broken ? broken.offers : [];
    const key = JSON.stringify(wanted);
    if (this.offered === key) return;
    this.offered = key;
    const made = wanted.map(([name, value]) => {
      const other = broken.kept?.[name];
      const words = `set ${name} to ${value}${other ? `; ${other} stays` : ""}`;
      return button(`${name} = ${value}`, () => this.take(name, value), words);
    });
    this.offers.replaceChildren(...made);
  }

  takes(name, value) {
    const knob = this.knobs.find((one) => one.name === name);
    return knob !== undefined && value >= knob.low && value <= knob.high;
  }

  // The button goes with the offer; who pressed it by a key goes on at the control.
  take(name, value) {
    this.controls[name].first.focus();
    this.move({ [name]: value });
  }

  say(sentence, wrong) {
    if (this.status.textContent !== sentence) this.status.textContent = sentence;
    this.status.classList.toggle("labs-wrong", Boolean(wrong));
    this.canvas.setAttribute("aria-label", `${this.name}. ${sentence}`);
  }
}

// Whether Python's answer is about these settings.
function answers(own, s) {
  return Boolean(own?.of) && Object.keys(own.of).every((name) => own.of[name] === s[name]);
}
