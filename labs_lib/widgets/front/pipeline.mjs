// Lab 12: one layer's attention in five steps. Every product is listed as [rows, middle, columns] and
// counted cell by cell; a step without one only moves numbers.

const MOVES = { "2 split": "moves nothing", "4 merge": "one copy" };

const volume = (lists) => lists.reduce((sum, sides) => sum + sides.reduce((a, b) => a * b), 0);

// The steps {name, out: {tensor: its shape}, work}, and how many numbers the layer keeps.
function layer_steps({ n_head, d_model, n_kv_head, new: come, past }) {
  const [head_dim, seen] = [d_model / n_head, past + come];
  const [asking, kept] = [n_head * head_dim, n_kv_head * head_dim];
  const inward = [asking, kept, kept].map((wide) => [d_model, wide]);
  const outward = [asking, d_model];
  const pairs = Array(n_head).fill([[come, head_dim, seen], [come, seen, head_dim]]).flat();
  const [heads, keys] = [[1, n_head, come, head_dim], [1, n_kv_head, seen, head_dim]];
  const [flat, narrow] = [[1, come, asking], [1, come, kept]];
  const listed = [
    ["1 project", { q: flat, k: narrow, v: narrow }, inward.map((sides) => [come, ...sides])],
    ["2 split", { q: heads, k: keys, v: keys }, []],
    ["3 attend", { heads }, pairs],
    ["4 merge", { merged: flat }, []],
    ["5 W_O", { out: [1, come, d_model] }, [[come, ...outward]]],
  ];
  return {
    list: listed.map(([name, out, products]) => ({ name, out, work: 2 * volume(products) })),
    weights: volume([...inward, outward]),
    cached: volume([keys, keys]),
  };
}

// A count with three digits and its unit: 6.29 M.
function in_units(count) {
  for (const [unit, size] of [["G", 1e9], ["M", 1e6], ["k", 1e3]]) {
    if (count >= size) return `${general(count / size, 3)} ${unit}`;
  }
  return String(count);
}

function pipeline_sentence(layer, work, { n_head, d_model, n_kv_head, new: come, past }) {
  const kind = n_kv_head === n_head ? "MHA" : n_kv_head === 1 ? "MQA" : "GQA";
  return (
    `${n_head} query heads of ${d_model / n_head}, ${n_kv_head} of keys and values (${kind}), ` +
    `${many(come, "token")} behind ${fixed(past, 0)}.\n6 products, ${in_units(work)} operations, ` +
    `${fixed(layer.weights, 0)} weights; ${fixed(layer.cached, 0)} numbers are in the layer's cache ` +
    "afterwards."
  );
}

// Where the five boxes stand: side by side, or one below the other where there is no room.
function places_of(pen) {
  const all = [0, 1, 2, 3, 4];
  if (pen.narrow) {
    return all.map((i) => ({ x: 10, y: 36 + i * 78, wide: pen.width - 20, high: 62 }));
  }
  const wide = (pen.width - 16) / 5;
  return all.map((i) => ({ x: 8 + i * wide, y: 36, wide: wide - 20, high: 176 }));
}

function draw_step(pen, place, { name, out, work }, share) {
  const { x, y, wide, high } = place;
  const colour = pen.colours[work ? 0 : 4];
  pen.box(x, y, wide, high, pen.theme.paper, colour);
  pen.box(x, y, pen.narrow ? 4 : wide, pen.narrow ? high : 4, colour);
  const words = work ? `${in_units(work)} operations` : MOVES[name];
  const head = { bold: true, colour };
  if (pen.narrow) {
    pen.text(name, x + 14, y + 18, head);
    pen.text(words, x + 14, y + 43, { size: 12, colour, most: 148 });
    const room = (wide - 170) / Object.keys(out).length;
    Object.entries(out).forEach(([tensor, shape], i) => {
      const at = x + 170 + i * room;
      pen.text(tensor, at, y + 18, { size: 12 });
      pen.text(`[${shape.join(", ")}]`, at, y + 43, { size: 12, most: room - 6 });
    });
    return;
  }
  const middle = { align: "center", most: wide - 10 };
  pen.text(name, x + wide / 2, y + 20, { ...middle, ...head });
  Object.entries(out).forEach(([tensor, shape], i) => {
    pen.text(tensor, x + wide / 2, y + 48 + 43 * i, { ...middle, size: 12 });
    pen.text(`[${shape.join(", ")}]`, x + wide / 2, y + 65 + 43 * i, middle);
  });
  pen.text(words, x + wide / 2, y + high + 16, { align: "center", size: 12, colour });
  pen.box(x, y + high + 30, wide, 8, pen.theme.faint);
  pen.box(x, y + high + 30, wide * share, 8, colour);
  const part = work ? `${fixed(100 * share, 0)} % of the work` : "no work";
  pen.text(part, x + wide / 2, y + high + 52, { align: "center", size: 12 });
}

function draw_arrow(pen, { x, y, wide, high }) {
  if (pen.narrow) {
    const [middle, end] = [x + 60, y + high + 15];
    pen.line([[middle, y + high + 2], [middle, end]]);
    pen.line([[middle - 4, end - 5], [middle, end], [middle + 4, end - 5]]);
    return;
  }
  const [middle, end] = [y + high / 2, x + wide + 17];
  pen.line([[x + wide + 3, middle], [end, middle]]);
  pen.line([[end - 5, middle - 4], [end, middle], [end - 5, middle + 4]]);
}

export default explorer({
  height: (width) => (width < 700 ? 36 + 5 * 78 : 288),
  rules: [group_rule],
  draw(pen, s) {
    const layer = layer_steps(s);
    const work = layer.list.reduce((sum, step) => sum + step.work, 0);
    const places = places_of(pen);
    layer.list.forEach((step, i) => draw_step(pen, places[i], step, step.work / work));
    places.slice(0, -1).forEach((place) => draw_arrow(pen, place));
    const part = fixed((100 * layer.list[2].work) / work, 0);
    pen.title(
      `x is [1, ${s.new}, ${s.d_model}]; attending to ${many(s.past + s.new, "key")} is ${part} % ` +
        "of the work",
    );
    return pipeline_sentence(layer, work, s);
  },
});
