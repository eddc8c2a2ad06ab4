// Lab 07: the words of a text in a row, and where one of them looks. The built head is computed
// here; of SmolLM2's, one text is recorded, and for another Python asks it.

const JUMP_BUILT = "built from codes";
const MOST_JUMP_WORDS = 40;
const EQUAL_WORDS = 9; // the score of two equal words
const JUMP_SURE = 0.5;
const JUMP_WORD = /[\u3000-\u9fff]|(?:(?![\u3000-\u9fff])[\p{L}\p{N}_])+|[^\p{L}\p{N}_\s]/gu;
const SAYS_NOTHING = "Type a text of at least two words.";

// A direction that only the word decides.
function word_code(word, head_dim) {
  let seed = 0x811c9dc5; // the sum FNV-1a of its bytes
  for (const byte of new TextEncoder().encode(word)) seed = Math.imul(seed ^ byte, 0x01000193);
  const code = Float64Array.from({ length: head_dim }, (_, i) => {
    let mixed = (Math.imul(i, 0x9e3779b9) + seed) >>> 0;
    mixed = Math.imul(mixed ^ (mixed >>> 16), 0x7feb352d) >>> 0;
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x846ca68b) >>> 0;
    return ((mixed ^ (mixed >>> 16)) >>> 0) / 2 ** 31 - 1;
  });
  const long = Math.sqrt(code.reduce((sum, x) => sum + x * x, 0));
  return code.map((x) => x / long);
}

// The built head: a word asks by its own code, and a place is found by the code of its neighbour on
// the left. What each place gets is held against every other place in turn.
function built_rows(words, head_dim) {
  const codes = words.map((word) => word_code(word.toLowerCase(), head_dim));
  return words.map((_, asks) => {
    const scores = words.slice(0, asks + 1).map((_, place) => {
      if (place === 0) return 0;
      const neighbour = codes[place - 1];
      return EQUAL_WORDS * codes[asks].reduce((sum, x, i) => sum + x * neighbour[i], 0);
    });
    return scores.map((mine) =>
      Math.fround(1 / scores.reduce((sum, other) => sum + Math.exp(other - mine), 0)),
    );
  });
}

let _built = { key: "", rows: [] }; // moving `place` computes nothing anew
function built_head(words, head_dim) {
  const key = `${head_dim} ${words.join(" ")}`;
  if (_built.key !== key) _built = { key, rows: built_rows(words, head_dim) };
  return _built.rows;
}

function rows_in(bytes, count) {
  const all = floats(bytes);
  return Array.from({ length: count }, (_, i) => [...all.slice(i * count, i * count + i + 1)]);
}

// Words, the rows of their weights, and who looks; null where Python hasn't answered.
function looked(s, model) {
  const { text, tokens, weights, who } = model.get("data");
  if (s.head === JUMP_BUILT) {
    const words = (s.text.match(JUMP_WORD) ?? []).slice(-MOST_JUMP_WORDS);
    const head_dim = Math.floor(s.d_model / s.n_head);
    const size = head_dim === 1 ? "1 number" : `${head_dim} numbers`;
    const told = `Built: head_dim ${head_dim}, so each word is ${size}.`;
    return { words, rows: () => built_head(words, head_dim), who: told };
  }
  if (s.text === text) return { words: tokens, rows: () => rows_in(weights, tokens.length), who: `Recorded: ${who}` };
  const own = model.get("own");
  if (!answers(own, s) || !own.tokens) return null;
  return { words: own.tokens, rows: () => rows_in(own.weights, own.tokens.length), who };
}

// Where the word of a place stood before, the last time; -1 where it is new.
function stood_at(words, place) {
  const bare = words.map((word) => word.trim().toLowerCase());
  return place > 0 ? bare.lastIndexOf(bare[place], place - 1) : -1;
}

function jump_sentence(words, row, place) {
  const bare = words.map((word) => word.trim());
  const [last, best] = [stood_at(words, place), row.indexOf(Math.max(...row))];
  const most = fixed(row[best], 2);
  if (last < 0) {
    return (
      `“${bare[place]}” (place ${place}) stands here for the first time: there is nothing to ` +
      `copy. Most weight, ${most}, goes to “${bare[best]}” (place ${best}).`
    );
  }
  const after = row[last + 1];
  const looks = `“${bare[place]}” stood at place ${last}; what came next, “${bare[last + 1]}”, gets `;
  if (best === last + 1 || after > JUMP_SURE) return `${looks}${fixed(after, 2)}.`;
  const share = fixed(after, 2) === most ? "As much" : "More";
  return `${looks}${fixed(after, 2)}. ${share} goes to “${bare[best]}” (place ${best}).`;
}

function word_shown(word) {
  return word.trim() || word.replaceAll("\n", "⏎").trim();
}

// Bars above, the words below them, and in the same columns the weights of every word.
function jump_fields(width, words) {
  const count = words.length;
  const room = 26 + Math.min(60, 6 * Math.max(...words.map((word) => word.length)));
  const [left, right] = [96, 12];
  const bars = { left, top: 40, width: width - left - right, height: 120 };
  const high = count > 24 ? 12 : 17;
  const map = { ...bars, top: bars.top + bars.height + room, height: high * count };
  return { bars, map, wide: bars.width / count, high };
}

function draw_jump_bars(pen, { bars, wide }, words, row, place) {
  const next = stood_at(words, place) + 1;
  const scale = pen.axes(bars, {
    x: [0, words.length], y: [0, 1.15], x_ticks: [], y_ticks: [0, 0.5, 1], y_label: "weight",
    title: `“${word_shown(words[place])}” looks back`,
  });
  pen.box(scale.x(place), bars.top, wide, bars.height, pen.theme.faint);
  const best = row.indexOf(Math.max(...row));
  row.forEach((share, i) => {
    const top = scale.y(share);
    const colour = next > 0 && i === next ? pen.colours[1] : pen.colours[0];
    pen.box(scale.x(i + 0.1), top, 0.8 * wide, scale.y(0) - top, colour);
    const told = wide >= 30 ? share >= 0.005 : i === best;
    if (told) pen.text(fixed(share, 2), scale.x(i + 0.5), top - 8, { size: 11, align: "center" });
  });
  pen.line([[bars.left, scale.y(0)], [bars.left + bars.width, scale.y(0)]]);
  words.forEach((word, i) => {
    const [x, y] = [scale.x(i + 0.5) + 3, bars.top + bars.height + 10];
    pen.text(word_shown(word), x, y, { size: 12, align: "right", turn: -55, bold: i === place, most: 84 });
  });
  if (best !== place) draw_arc(pen, scale.x(place + 0.5), scale.x(best + 0.5), scale.y(0.06), scale.y(row[best]));
}

// An arrow from the word that asks to the one that it looks at most.
function draw_arc(pen, from, to, low, high) {
  const [side, on] = [Math.sign(from - to), pen.on];
  const end = [to + side * 7, Math.min(high + 8, low)];
  const bend = [(from + to) / 2, Math.min(end[1], low) - 34];
  on.save();
  on.strokeStyle = pen.theme.ink;
  on.fillStyle = pen.theme.ink;
  on.lineWidth = 1.3;
  on.beginPath();
  on.moveTo(from, low);
  on.quadraticCurveTo(...bend, ...end);
  on.stroke();
  const turn = Math.atan2(end[1] - bend[1], end[0] - bend[0]);
  on.translate(...end);
  on.rotate(turn);
  on.beginPath();
  on.moveTo(2, 0);
  on.lineTo(-8, -4);
  on.lineTo(-8, 4);
  on.fill();
  on.restore();
}

function draw_jump_map(pen, { map, wide, high }, words, rows, place) {
  const count = words.length;
  const share = (i) => rows[Math.floor(i / count)][i % count];
  pen.cells(map.left, map.top, map.width, map.height, count, count, (i) => cividis(share(i) ?? 0));
  rows.forEach((row, asks) => {
    const y = map.top + asks * high;
    const next = stood_at(words, asks) + 1;
    pen.box(map.left + (asks + 1) * wide - 0.5, y, map.width - (asks + 1) * wide + 1, high + 0.5, pen.theme.paper);
    row.forEach((value, i) => {
      const [x, ink] = [map.left + i * wide, ink_on(cividis(value))];
      if (next > 0 && i === next) pen.frame(x + 1, y + 1, wide - 2, high - 2, ink);
      if (wide >= 22 && value >= 0.005) {
        pen.text(fixed(100 * value, 0), x + wide / 2, y + high / 2 + 0.5, { size: high > 14 ? 11 : 9, align: "center", colour: ink });
      }
    });
    pen.text(word_shown(words[asks]), map.left - 6, y + high / 2, {
      size: high > 14 ? 12 : 10, align: "right", bold: asks === place, most: map.left - 12,
    });
  });
  const [x, y] = [map.left, map.top + place * high];
  pen.frame(x, y, map.width, high, pen.colours[1], 2);
  const below = map.top + map.height + 16;
  pen.text("each row: a word that asks, in % of its weight; framed: what came next last time", 12, below, { size: 12, most: pen.width - 20 });
  const long = pen.narrow ? 130 : 190;
  pen.shades(pen.width - long - 24, below + 18, long, 0, 100, "% of weight");
  pen.legend(12, below + 24, [["what came next", pen.colours[1]], ["others", pen.colours[0]]]);
}

function words_under({ x, y, width }, { words }) {
  const { bars, map, wide, high } = jump_fields(width, words);
  const column = Math.floor((x - map.left) / wide);
  const asks = Math.floor((y - map.top) / high);
  const inside = column >= 0 && column < words.length;
  if (asks >= 0 && asks < words.length) return { asks, column: inside && column <= asks ? column : null };
  return inside && y > bars.top && y < map.top ? { asks: null, column } : null;
}

export default explorer({
  height(width, s, model) {
    const found = looked(s, model);
    if (!found || found.words.length < 2) return 60;
    const { map } = jump_fields(width, found.words);
    return map.top + map.height + 66;
  },
  limits(s, model) {
    const count = looked(s, model)?.words.length ?? MOST_JUMP_WORDS;
    return { place: [0, Math.max(1, count) - 1] };
  },
  asks: (s, model) => s.head !== JUMP_BUILT && s.text !== model.get("data").text,
  waits: "Python asks SmolLM2's head for this text; without a kernel it can't.",
  picks(at, s, model) {
    const found = looked(s, model);
    const under = found && found.words.length > 1 && words_under(at, found);
    return under ? { place: under.asks ?? under.column } : null;
  },
  reads(at, s, model) {
    const found = looked(s, model);
    const under = found && found.words.length > 1 && words_under(at, found);
    if (!under) return "";
    const asks = under.asks ?? s.place;
    const [row, bare] = [found.rows()[asks], found.words.map((word) => word.trim())];
    if (under.column === null) return jump_sentence(found.words, row, asks);
    const given = under.column > asks ? "it comes later, and is not seen" : fixed(row[under.column], 3);
    return `“${bare[asks]}” (${asks}) to “${bare[under.column]}” (${under.column}): ${given}.`;
  },
  draw(pen, s, model) {
    const { words, rows, who } = looked(s, model);
    if (words.length < 2) {
      pen.text("no words to draw", 12, 30);
      return SAYS_NOTHING;
    }
    const [fields, all] = [jump_fields(pen.width, words), rows()];
    draw_jump_bars(pen, fields, words, all[s.place], s.place);
    draw_jump_map(pen, fields, words, all, s.place);
    return `${who} ${jump_sentence(words, all[s.place], s.place)}`;
  },
});
