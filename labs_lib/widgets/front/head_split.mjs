// Lab 02: where the numbers of each head lie in memory. Nothing is calculated about places: rows
// of numbered places are cut as a split cuts them, and then looked at.

const RIGHT = "cut the width, then swap the axes";
const OWN = "your split_heads";
const BYTES = 4; // of a float32

// For each head and token the places of its numbers: heads[head][token] is a row.
function cut(way, n_head, seq, d_model) {
  const size = d_model / n_head;
  const memory = Array.from({ length: seq * d_model }, (_, place) => place);
  const heads = Array.from({ length: n_head }, () => []);
  if (way === RIGHT) {
    for (let token = 0; token < seq; token++) {
      const row = memory.slice(token * d_model, (token + 1) * d_model);
      heads.forEach((head, h) => head.push(row.slice(h * size, (h + 1) * size)));
    }
    return heads;
  }
  let read = 0; // one reshape takes the numbers as they come
  for (const head of heads) {
    while (head.length < seq) head.push(memory.slice(read, (read += size)));
  }
  return heads;
}

function owners_of(heads, seq, d_model) {
  const owner = new Uint16Array(seq * d_model);
  heads.forEach((head, h) => head.flat().forEach((place) => (owner[place] = h)));
  return owner;
}

function distances(heads) {
  const first = heads[0][0][0];
  const walks = [
    ["a head's next number", heads[0][0][1]],
    ["its next token", heads[0][1]?.[0]],
    ["the next head", heads[1]?.[0][0]],
  ];
  const parts = walks
    .filter(([, place]) => place !== undefined)
    .map(([words, place]) => `${number(place - first)} to ${words}`);
  return `Distances, in places of ${BYTES} bytes: ${parts.join(", ") || "none, it is one number"}.`;
}

function in_place(heads, right) {
  const [found, wanted] = [heads.flat(2), right.flat(2)];
  return found.filter((place, i) => place === wanted[i]).length / found.length;
}

function judgement(share, n_head, seq) {
  if (share < 1) return `${fixed(100 * share, 2)} % of the numbers are where they belong.`;
  if (n_head > 1 && seq > 1) return "Every number is where it belongs.";
  const few = n_head === 1 ? "one head" : "one token";
  return `Every number is where it belongs; with ${few} the wrong reshape is right too.`;
}

function split_title(share, n_head, head_dim) {
  if (share < 1) return "A head has pieces of some queries and nothing of others";
  const of_all = `${head_dim} of the ${n_head * head_dim} numbers of every query`;
  return n_head > 1 ? `Each head has ${of_all}` : "One head has it all";
}

// Memory, one row per token; every place has the colour and the number of the head that reads it.
function draw_memory(pen, owner, { n_head, seq, d_model }, title) {
  const field = { left: 64, top: 34, width: pen.width - 76, height: pen.height - 86 };
  const shade = (head) => cividis(n_head > 1 ? head / (n_head - 1) : 0);
  pen.cells(field.left, field.top, field.width, field.height, seq, d_model, (i) => shade(owner[i]));
  const scale = pen.axes(field, {
    x: [0, d_model], y: [seq, 0], title,
    y_ticks: Array.from({ length: seq }, (_, token) => [token + 0.5, token]),
    y_label: "token",
    x_label: pen.narrow
      ? "place in the token's row; in the cells: the head"
      : "place in the token's row of memory (in numbers); in the cells: the head",
  });
  for (let token = 0; token < seq; token++) {
    const [top, bottom] = [scale.y(token), scale.y(token + 1)];
    let start = 0;
    for (let place = 1; place <= d_model; place++) {
      const head = owner[token * d_model + start];
      if (place < d_model && owner[token * d_model + place] === head) continue;
      const [x0, x1] = [scale.x(start), scale.x(place)];
      if (start && x1 - x0 > 3) pen.line([[x0, top], [x0, bottom]], pen.theme.paper);
      if (x1 - x0 > 16) {
        const ink = { align: "center", colour: ink_on(shade(head)), size: 12 };
        pen.text(head, (x0 + x1) / 2, (top + bottom) / 2, ink);
      }
      start = place;
    }
  }
}

export default explorer({
  height: (width, { seq }) => 100 + Math.max(4, seq) * 24,
  asks: ({ way }) => way === OWN,
  draw(pen, s) {
    const { n_head, d_model, seq, way, own } = s;
    if (own) {
      draw_memory(pen, floats(own.owner, Uint16Array), s, own.title);
      return own.message;
    }
    const right = cut(RIGHT, n_head, seq, d_model);
    const heads = way === RIGHT ? right : cut(way, n_head, seq, d_model);
    const share = in_place(heads, right);
    draw_memory(pen, owners_of(heads, seq, d_model), s, split_title(share, n_head, d_model / n_head));
    return `${distances(heads)} ${judgement(share, n_head, seq)}`;
  },
});
