// Lab 04: a model's ledger. Nothing here is a formula: the pieces that each head brings are listed,
// and their cells counted one piece after the other.

const LATENT = "a latent (MLA)";
const NUMBER = 2; // bytes of a number in float16
const UNITS = { parameters: "", operations: "", bytes: "B" };
const SIZES = ["", "k", "M", "G", "T", "P", "E"];
const PART_COLOUR = {
  attention: 0, projections: 0, scores: 3, softmax: 5, MLP: 1, embeddings: 2, logits: 2,
  weights: 4, cache: 2,
};

const cells = (pieces) => pieces.reduce((sum, [rows, columns]) => sum + rows * columns, 0);
const repeat = (count, pieces) => Array.from({ length: count }, () => pieces).flat();

// The pieces [rows, columns] of one layer's matrices, and what its cache holds of one token.
function layer_of({ n_head, d_model, n_kv_head, cached, rank, rotary }) {
  const wide = d_model / n_head; // of a head
  const out = repeat(n_head, [[wide, d_model]]);
  if (cached === LATENT) {
    const asks = repeat(n_head, [[d_model, wide], [d_model, rotary]]);
    const down = [[d_model, rank], [d_model, rotary]];
    const up = repeat(n_head, [[rank, wide], [rank, wide]]);
    return { matrices: [...asks, ...down, ...up, ...out], kept: [[1, rank], [1, rotary]] };
  }
  const asks = repeat(n_head, [[d_model, wide]]);
  const told = repeat(n_kv_head, [[d_model, wide], [d_model, wide]]);
  return { matrices: [...asks, ...told, ...out], kept: repeat(n_kv_head, [[1, wide], [1, wide]]) };
}

// A product of [tokens, rows] with each piece: a multiplication and an addition for every cell.
const products = (tokens, pieces) => 2 * tokens * cells(pieces);

function ledger_rows(s, softmax_ops) {
  const { n_head, d_model, cached, rotary, n_layer, context, vocab, tied } = s;
  const { matrices, kept } = layer_of(s);
  const wide = d_model / n_head;
  const compared = cached === LATENT ? wide + rotary : wide;
  const mlp = [[d_model, 4 * d_model], [4 * d_model, d_model]];
  const tables = [...repeat(tied ? 1 : 2, [[vocab, d_model]]), [context, d_model]];
  const grids = repeat(n_head, [[context, context]]);
  const between = repeat(n_head, [[compared, context], [context, wide]]);
  const parameters = {
    attention: n_layer * cells(matrices), MLP: n_layer * cells(mlp), embeddings: cells(tables),
  };
  return {
    parameters,
    operations: {
      projections: n_layer * products(context, matrices),
      scores: n_layer * products(context, between),
      softmax: n_layer * softmax_ops * cells(grids),
      MLP: n_layer * products(context, mlp),
      logits: products(context, [[d_model, vocab]]),
    },
    bytes: {
      weights: NUMBER * total(parameters),
      cache: NUMBER * n_layer * context * cells(kept),
      scores: NUMBER * cells(grids),
    },
  };
}

function total(parts) {
  return Object.values(parts).reduce((sum, count) => sum + count, 0);
}

// A count with four digits and its size: M for a million, G for a thousand of these.
function short(count, unit = "") {
  let [value, step] = [count, 0];
  while (value >= 1000 && step < SIZES.length - 1) [value, step] = [value / 1000, step + 1];
  if (step < 2) return `${number(count)} ${unit}`.trimEnd();
  return `${Number(value.toPrecision(4))} ${SIZES[step]}${unit}`;
}

function kind_of({ n_head, n_kv_head, cached, rank, rotary }) {
  if (cached === LATENT) return `MLA with a latent of ${rank} and a rotary key of ${rotary}`;
  if (n_kv_head === n_head) return "MHA";
  return n_kv_head === 1 ? "MQA" : "GQA";
}

function ledger_sentence(rows, s) {
  const { n_head, d_model } = s;
  const heads = n_head > 1 ? `${n_head} heads of ${d_model / n_head}` : "one head";
  const lines = Object.entries(rows).map(([name, parts]) => {
    const listed = Object.entries(parts).map(([part, n]) => `${part} ${short(n, UNITS[name])}`);
    return `${name}: ${listed.join(", ")}.`;
  });
  return [`${heads}, ${kind_of(s)}.`, ...lines].join("\n");
}

function draw_ledger(pen, rows) {
  const { parameters, operations } = rows;
  const work = operations.projections + operations.scores + operations.softmax;
  const share = (part, parts) => fixed((100 * part) / total(parts), 1);
  const title =
    `Attention has ${share(parameters.attention, parameters)} % of the parameters and ` +
    `${share(work, operations)} % of the operations`;
  pen.title(title);
  const [left, wide, high] = [112, pen.width - 128, 58];
  Object.entries(rows).forEach(([name, parts], i) => {
    const top = 36 + i * (high + 14);
    const words = `${name}\n${short(total(parts), UNITS[name])}`;
    pen.text(words, left - 10, top + high / 2, { align: "right" });
    let x = left;
    for (const [part, count] of Object.entries(parts)) {
      const width = (wide * count) / total(parts);
      const colour = pen.colours[PART_COLOUR[part]];
      pen.box(x, top, Math.max(width - 1, 0.5), high, colour);
      const label = `${part}\n${fixed((100 * width) / wide, 1)} %`;
      const ink = { align: "center", size: 12, colour: ink_on(colour) };
      if (pen.wide(part, 12) + 6 < width) pen.text(label, x + width / 2, top + high / 2, ink);
      x += width;
    }
  });
  const bottom = 36 + 3 * (high + 14);
  for (const percent of [0, 20, 40, 60, 80, 100]) {
    pen.text(percent, left + (wide * percent) / 100, bottom, { align: "center", size: 12 });
  }
  pen.text("share (%)", left + wide / 2, bottom + 20, { align: "center" });
}

export default explorer({
  height: () => 286,
  follow: { n_kv_head: "n_head" },
  rules: [(s) => (s.cached === LATENT ? null : group_rule(s))],
  asks: (s, model) => model.get("data").asks,
  partial: true,
  draw(pen, s, model) {
    const rows = ledger_rows(s, model.get("data").softmax_ops);
    draw_ledger(pen, rows);
    return [ledger_sentence(rows, s), ...(s.own ? [s.own.line] : [])].join("\n");
  },
});
