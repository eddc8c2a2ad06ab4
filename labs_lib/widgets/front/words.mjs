// Numbers in words, letter for letter as Python writes them.

// Half a step is rounded to the even neighbour, as Python does; toFixed and toPrecision go up.
function even_half(text, value, digits) {
  const halves = Math.abs(value) * 2 ** (digits + 1) * 5 ** digits; // exact, as halves are short
  if (!Number.isInteger(Math.abs(value) * 2 ** (digits + 1)) || halves % 2 !== 1) return text;
  const lower = (halves - 1) / 2;
  return lower % 2 ? text : ((Math.sign(value) * lower) / 10 ** digits).toFixed(digits);
}

// As Python's f"{value:,.2f}".
function fixed(value, digits) {
  if (!Number.isFinite(value)) return unending(value);
  const text = even_half(value.toFixed(digits), value, digits);
  const [whole, part] = text.split(".");
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ",");
  return part === undefined ? grouped : `${grouped}.${part}`;
}

// As Python's f"{value:.3g}".
function general(value, digits) {
  if (!Number.isFinite(value)) return unending(value);
  const [, ten] = value.toExponential(digits - 1).split("e").map(Number);
  if (ten >= -4 && ten < digits) {
    const text = even_half(value.toFixed(digits - 1 - ten), value, digits - 1 - ten);
    return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
  }
  const unit = 10 ** (ten - digits + 1);
  const down = unit > 1 && value % (2 * unit) === Math.sign(value) * (unit / 2);
  const rounded = down ? value - (value % unit) : value;
  const [first, power] = rounded.toExponential(digits - 1).split("e");
  const short = first.includes(".") ? first.replace(/\.?0+$/, "") : first;
  return `${short}e${power[0]}${power.slice(1).padStart(2, "0")}`;
}

function unending(value) {
  return Number.isNaN(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

// "1 block", "2,000 blocks", "2 passes".
function many(count, word) {
  const plural = word.endsWith("s") ? `${word}es` : `${word}s`;
  return `${fixed(count, 0)} ${count === 1 ? word : plural}`;
}
