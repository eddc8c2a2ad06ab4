// Lab 08: what a token costs in the cache. Vectors are made one after the other, and their bytes
// are added up; there is no formula here.

const GIB = 2 ** 30;
const CACHE_NAMES = ["MHA", "GQA", "MQA", "MLA"];

function rotary_rule({ rotary }) {
  if (rotary % 2 === 0) return null;
  return {
    why: `rotary=${rotary} is odd, and positions turn numbers in pairs`,
    offers: [["rotary", rotary - 1], ["rotary", rotary + 1]],
    width: rotary,
    parts: 2,
    title: "One number has no partner",
    label: `the ${rotary} numbers of a rotary key, in two halves`,
  };
}

// Lays one token's vectors of all layers into a cache, and counts.
function bytes_a_token({ n_head, d_model, n_kv_head, n_layer, rank, rotary }) {
  const vector = (length) => new Uint16Array(length); // float16 takes as much
  const of_head = vector(d_model / n_head);
  const counts = { MHA: n_head, GQA: n_kv_head, MQA: 1 };
  const sizes = {};
  for (const [name, heads] of Object.entries(counts)) {
    let bytes = 0;
    for (let layer = 0; layer < n_layer; layer++) {
      for (const _part of ["key", "value"]) {
        for (let head = 0; head < heads; head++) bytes += of_head.byteLength;
      }
    }
    sizes[name] = bytes;
  }
  sizes.MLA = 0;
  for (let layer = 0; layer < n_layer; layer++) {
    for (const kept of [vector(rank), vector(rotary)]) sizes.MLA += kept.byteLength;
  }
  return sizes;
}

function unit_of(size) {
  return [["MiB", 2 ** 20], ["KiB", 2 ** 10]].find(([, scale]) => size >= scale) ?? ["B", 1];
}

function in_words(size) {
  const [unit, scale] = unit_of(size);
  return `${general(size / scale, 4)} ${unit}`;
}

function cache_title(sizes) {
  if (sizes.GQA === sizes.MHA) return "Every query head has keys and values of its own";
  return `Shared heads keep ${fixed((100 * sizes.GQA) / sizes.MHA, 1)}% of what ordinary ones keep`;
}

// One bar for each way, its bytes and how many tokens fit written beside it.
function draw_caches(pen, sizes, room) {
  const most = Math.max(...Object.values(sizes));
  const [unit, scale] = unit_of(most);
  const words = CACHE_NAMES.map((name) => {
    const fits = room > 0 ? `${fixed(Math.floor(room / sizes[name]), 0)} tokens fit` : "no room";
    return `${in_words(sizes[name])}: ${fits}`;
  });
  const beside = Math.max(...words.map((text) => pen.wide(text))) + 16;
  const field = { left: 62, top: 34, width: pen.width - 62 - beside, height: pen.height - 90 };
  const at = pen.axes(field, {
    x: [0, most / scale], y: [4, 0], title: cache_title(sizes),
    y_ticks: CACHE_NAMES.map((name, i) => [i + 0.5, name]),
    x_label: `${unit} that one token adds, all layers, two bytes a number`,
  });
  CACHE_NAMES.forEach((name, i) => {
    const end = at.x(sizes[name] / scale);
    pen.box(field.left, at.y(i + 0.2), end - field.left, at.y(0.6) - at.y(0), pen.colours[i]);
    pen.text(words[i], end + 8, at.y(i + 0.5));
  });
}

// The card: weights, and what is left for the cache.
function draw_card(pen, top, { card, weights }) {
  const [left, width] = [62, pen.width - 62 - 12];
  const taken = Math.min(1, weights / card) * width;
  pen.text("card", left - 7, top + 10, { align: "right", size: 12 });
  pen.box(left, top, width, 20, tint(pen.colours[2], pen.theme.paper, 0.25), pen.colours[2]);
  pen.box(left, top, taken, 20, pen.theme.grey);
  const names = [[`weights ${weights} GiB`, pen.theme.grey]];
  const free = tint(pen.colours[2], pen.theme.paper, 0.25);
  names.push(card > weights ? [`for the cache ${card - weights} GiB`, free] : ["no room", free]);
  pen.legend(left, top + 34, names);
}

function cache_sentence(s, sizes, room) {
  const listed = CACHE_NAMES.map((name) => `${name} ${fixed(sizes[name], 0)} B`).join(", ");
  const fits = CACHE_NAMES.map((name) => `${name} ${fixed(Math.floor(room / sizes[name]), 0)}`);
  const second =
    room > 0
      ? `Tokens that fit beside the weights: ${fits.join(", ")}.`
      : `The weights (${s.weights} GiB) leave no room on a card of ${s.card} GiB.`;
  return (
    `${many(s.n_head, "query head")} of ${s.d_model / s.n_head}, ${s.n_kv_head} to be kept: ` +
    `${listed}, a token.\n${second}`
  );
}

export default explorer({
  height: () => 310,
  rules: [group_rule, rotary_rule],
  asks: (s, model) => model.get("data").asks,
  partial: true,
  draw(pen, s) {
    const sizes = bytes_a_token(s);
    const room = (s.card - s.weights) * GIB;
    draw_caches({ __proto__: pen, height: 250 }, sizes, room);
    draw_card(pen, 256, s);
    const told = cache_sentence(s, sizes, room);
    return s.own ? `${told}\n${s.own.message}` : told;
  },
});
