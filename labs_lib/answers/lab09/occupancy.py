"""Lab 09: how many blocks fit on a multiprocessor."""

from __future__ import annotations

import math
from types import SimpleNamespace

from ...arithmetic import occupancy as sheet
from ..kit import Answer, Right, Wrong


def _up(amount, piece):
    return math.ceil(amount / piece) * piece


def _fits(threads, registers, shared_bytes, sm):
    """What each limit allows, in the order asked for."""
    warps = math.ceil(threads / 32)
    per_warp = _up(32 * registers, sm.register_piece)
    per_block = _up(shared_bytes + sm.reserved, sm.shared_piece)
    return {
        "warps": sm.warps // warps,
        "blocks": sm.blocks,
        "registers": 4 * (sm.registers // 4 // per_warp) // warps,
        "shared memory": sm.shared // per_block if per_block else sm.blocks,
    }


def _told(fits, threads):
    limit = min(fits, key=fits.get)
    return fits[limit], fits[limit] * math.ceil(threads / 32), limit


def _changed(change):
    """The right count until `change(fits, threads, registers, shared_bytes, sm)` spoils it."""

    def program(threads, registers, shared_bytes, sm):
        fits = _fits(threads, registers, shared_bytes, sm)
        change(fits, threads, registers, shared_bytes, sm)
        return _told(fits, threads)

    return program


def _other(**changes):
    """The right count for an SM that hands its goods out otherwise."""

    def program(threads, registers, shared_bytes, sm):
        fields = {name: getattr(sm, name) for name in sm.__dataclass_fields__}
        return _told(
            _fits(threads, registers, shared_bytes, SimpleNamespace(**fields | changes)), threads
        )

    return program


def _without(name):
    return _changed(lambda fits, *rest: fits.pop(name))


def _registers(count):
    """Another count of what the registers allow."""
    return _changed(
        lambda fits, t, r, s, sm: fits.update(registers=count(math.ceil(t / 32), r, sm))
    )


def _shared(count):
    """Another count of what the shared memory allows."""

    def change(fits, t, r, s, sm):
        bytes_ = count(s, sm)
        fits["shared memory"] = sm.shared // bytes_ if bytes_ else sm.blocks

    return _changed(change)


def _returning(shape):
    """Right numbers, returned in another form."""

    def program(threads, registers, shared_bytes, sm):
        fits = _fits(threads, registers, shared_bytes, sm)
        return shape(*_told(fits, threads), threads, sm, fits)

    return program


def _loop(threads, registers, shared_bytes, sm):
    """Puts one block after another onto the SM until something is used up."""
    warps = -(-threads // 32)
    per_warp = -(-32 * registers // sm.register_piece) * sm.register_piece
    per_block = -(-(shared_bytes + sm.reserved) // sm.shared_piece) * sm.shared_piece
    slots = sm.registers // 4 // per_warp * 4
    blocks = 0
    while True:
        more = blocks + 1
        full = [
            more * warps > sm.warps,
            more > sm.blocks,
            more * warps > slots,
            more * per_block > sm.shared,
        ]
        if any(full):
            names = ("warps", "blocks", "registers", "shared memory")
            return blocks, blocks * warps, names[full.index(True)]
        blocks = more


NO_REGISTERS = (
    "Registers never allow too little here: they are left out, or counted for one thread of a\n"
    "warp. Each of its 32 threads has that many, and keeps them as long as the block lives."
)

DIVIDES = (
    "A block may ask for no shared memory at all, and older GPUs keep back none: then you divide\n"
    "by zero. Shared memory is no limit there."
)
FULL_WARPS = (
    "A block of 250 threads is given eight warps, the last of them not full: round up\n"
    "before you divide."
)


def _nothing_rounded(threads, registers, shared_bytes, sm):
    bytes_ = shared_bytes + sm.reserved
    fits = {
        "warps": sm.warps // max(1, threads // 32),
        "blocks": sm.blocks,
        "registers": sm.registers // (threads * registers),
        "shared memory": sm.shared // bytes_ if bytes_ else sm.blocks,
    }
    limit = min(fits, key=fits.get)
    return fits[limit], fits[limit] * max(1, threads // 32), limit


OCCUPANCY = Answer(
    reference=sheet.occupancy,
    wrong=(
        Wrong("threads_in_place_of_warps",
              lambda t, r, s, sm: (lambda b, w, limit: (b, b * t // 32, limit))(
                  *_told(_fits(t, r, s, sm) | {"warps": 32 * sm.warps // t}, t)),
              FULL_WARPS),
        Wrong("warps_in_fractions", _returning(lambda b, w, limit, t, sm, f: (
            b, b * t / 32, limit)),
              FULL_WARPS),
        Wrong("nothing_rounded", _nothing_rounded,
              "Nothing is rounded up here. Warps are whole, and registers and shared memory are\n"
              "handed out in pieces: round up what a block takes before you divide."),
        Wrong("part_of_a_warp_dropped",
              lambda t, r, s, sm: (lambda whole: _told(_fits(whole, r, s, sm), whole))(
                  max(32, t // 32 * 32)),
              "Threads that don't fill a warp are dropped here. They get a warp too: round up."),
        Wrong("registers_left_out", _without("registers"),
              NO_REGISTERS),
        Wrong("shared_memory_left_out", _without("shared memory"),
              "Shared memory is left out of the account."),
        Wrong("blocks_left_out", _without("blocks"),
              "An SM has a largest number of blocks too, however small they are: sm.blocks."),
        Wrong("warps_left_out", _without("warps"),
              "An SM has a largest number of warps too: sm.warps."),
        Wrong("registers_to_the_last_one",
              _registers(lambda w, r, sm: sm.registers // (32 * r) // w),
              "Registers are counted one by one. A warp gets them in pieces of register_piece,\n"
              "and all of a warp's from the same quarter of the SM."),
        Wrong("registers_not_in_quarters",
              _registers(lambda w, r, sm: sm.registers // _up(32 * r, sm.register_piece) // w),
              "A warp's registers all come from one of four quarters. What is left over in one\n"
              "quarter can't be put together with what is left over in another."),
        Wrong("registers_not_in_pieces",
              _registers(lambda w, r, sm: 4 * (sm.registers // 4 // (32 * r)) // w),
              "A warp gets its registers in pieces: round up what 32 threads need."),
        Wrong("registers_of_a_block_in_pieces",
              _registers(lambda w, r, sm: sm.registers // _up(32 * r * w, sm.register_piece)),
              "You round up what a block needs. It is each warp whose registers come in pieces."),
        Wrong("registers_of_one_thread_a_warp",
              _registers(
                  lambda w, r, sm: 4 * (sm.registers // 4 // _up(r, sm.register_piece)) // w),
              NO_REGISTERS),
        Wrong("registers_of_each_thread_in_pieces",
              _registers(lambda w, r, sm: 4 * (
                  sm.registers // 4 // (32 * _up(r, sm.register_piece))) // w),
              "The registers of one thread are rounded up to register_piece. It is a warp's,\n"
              "those of 32 threads together, that come in such pieces."),
        Wrong("divides_by_what_is_asked_for",
              lambda t, r, s, sm: _told(_fits(t, r, s, sm) | {"shared memory": sm.shared // s}, t),
              DIVIDES),
        Wrong("divides_by_nothing",
              lambda t, r, s, sm: _told(_fits(t, r, s, sm) | {
                  "shared memory": sm.shared // _up(s + sm.reserved, sm.shared_piece)}, t),
              DIVIDES),
        Wrong("nothing_reserved", _other(reserved=0),
              "On newer GPUs the system keeps a part of each block's shared memory for itself:\n"
              "sm.reserved bytes on top of what the kernel asks for."),
        Wrong("always_a_kibibyte", _other(reserved=1024),
              "1,024 bytes are reserved here on every GPU. The older ones reserve nothing: take\n"
              "sm.reserved."),
        Wrong("shared_memory_not_in_pieces", _shared(lambda s, sm: s + sm.reserved),
              "Shared memory is handed out in pieces of shared_piece bytes: round up."),
        Wrong("pieces_of_128", _other(shared_piece=128),
              "Shared memory comes in pieces of 128 bytes here, everywhere. Take sm.shared_piece."),
        Wrong("at_least_one", _changed(lambda fits, *rest: fits.update(
            {k: max(1, v) for k, v in fits.items()})),
              "A block that doesn't fit runs nowhere: then the answer is 0 blocks, not 1."),
        Wrong("whole_fractions", _changed(lambda fits, t, r, s, sm: fits.update(
            warps=sm.warps / math.ceil(t / 32))),
              "Blocks are whole. What is left over of an SM stays empty: round down."),
        Wrong("rounded_up", _changed(lambda fits, t, r, s, sm: fits.update(
            warps=-(-sm.warps // math.ceil(t / 32)))),
              "You round up where an SM isn't filled to the end; half a block can't run."),
        Wrong("the_widest_limit", lambda t, r, s, sm: (lambda f: (
            max(f.values()), max(f.values()) * math.ceil(t / 32), max(f, key=f.get)))(
                _fits(t, r, s, sm)),
              "You take the largest of the four numbers. The narrowest limit decides."),
        Wrong("threads_for_warps", _returning(lambda b, w, limit, t, sm, f: (b, b * t, limit)),
              "The second number counts threads. Wanted are warps."),
        Wrong("warps_of_one_block", _returning(lambda b, w, limit, t, sm, f: (
            b, math.ceil(t / 32), limit)),
              "The second number is the warps of one block. Wanted are those of all blocks."),
        Wrong("share_for_warps", _returning(lambda b, w, limit, t, sm, f: (b, w / sm.warps, limit)),
              "The second number is the share of the SM's warps. Wanted is how many there are."),
        Wrong("last_of_equal_limits", _returning(lambda b, w, limit, t, sm, f: (
            b, w, [name for name in f if f[name] == b][-1])),
              "Where two limits allow equally few, the first of them is wanted, in the order\n"
              "warps, blocks, registers, shared memory."),
        Wrong("sm_80_for_all", lambda t, r, s, sm: _told(
            _fits(t, r, s, sheet.MULTIPROCESSORS["sm_80"]), t),
              "Every SM is counted as one of an A100. The fifth thing that you are handed says\n"
              "what this one has."),
    ),
    right=(
        Right("block_by_block", _loop),
        Right("list", _returning(lambda b, w, limit, t, sm, f: [b, w, limit])),
        Right("by_quarters", lambda t, r, s, sm: _told(_fits(t, r, s, sm), t)),
    ),
)  # fmt: skip
