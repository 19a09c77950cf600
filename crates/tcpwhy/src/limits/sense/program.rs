//! Pulses, writes and pauses: a clock of the sender's own, or its program.

use super::Share;

/// Sends closer than this are one burst. Ours: not measured. For `beat`, `pulse`, `quick/streak`, `sender/book`.
pub(crate) const BURST_GAP_NS: i64 = 100_000;

/// Answers that leave at once pass the tap within this, beyond the constant way to it (limits-method section 4
/// allows as much). Ours: not measured. For `pulse`.
pub(crate) const PULSE_PROMPT_NS: i64 = 50_000;

/// What comes behind an arrival within this share of the distance between two pulses, time and again, comes so by
/// no chance: a writer that a full buffer blocked wakes up as late. Ours: not measured. For `pulse`.
pub(crate) const NO_CHANCE: Share = Share(1, 64);

/// What comes further behind an arrival than this share of the time since the send before it was not let out by that. Ours:
/// an eighth, so that a slow host's answer counts as one; a clock's own sends lie so by chance one time in eight. For
/// `pulse`.
pub(crate) const NO_ANSWER: Share = Share(1, 8);

/// Of what goes out in a repair this share came by itself where there is a clock. Ours: a quarter, for a window that
/// conserves packets lets out most of the first round trip's (`bbr_set_cwnd_to_recover_or_restore`). For `pulse`.
pub(crate) const BY_CLOCK: Share = Share(1, 4);

/// A distance stays alike if it changes by this many times less than the time since the last arrival. A pause of a
/// program stays alike if it changes by this many times less than it lasts. Ours: not measured. For `pulse`,
/// `sender/writes`.
pub(crate) const STEADIER: i64 = 4;

/// Fewer pulses tell nothing. Ours: not measured. For `pulse`.
pub(crate) const ENOUGH_PULSES: u32 = 8;

/// Distances that differ by this share are alike. Ours: an eighth. For `pulse`.
pub(crate) const ALIKE: Share = Share(1, 8);

/// A pulse is missed after this many times its distance. Ours: twice, so that one timer's delay is none. For `pulse`.
pub(crate) const MISSED_TIMES: i64 = 2;

/// As many pulses may come as promptly as answers do and yet be the sender's own. Ours: one of eight, by chance.
/// For `pulse`.
pub(crate) const PROMPT_BY_CHANCE: Share = Share(1, 8);

/// Of as many, distances were kept where what arrived before them came earlier or later. Ours: one of eight; with
/// one of sixteen two send buffers of 48 were told as the application in captures that lack one packet of a
/// hundred. For `pulse`.
pub(crate) const KEPT_DISTANCES: Share = Share(1, 8);

/// Pulses of a smaller variance than this share of their distance's square come at even distances: a coefficient of
/// variation under 0.3. Ours. For `pulse`.
pub(crate) const EVEN_VARIANCE: Share = Share(9, 100);

/// Or, where a window or a repair stops them now and then, this share of them is like the one before. Ours. For
/// `pulse`.
pub(crate) const EVEN_ALIKE: Share = Share(2, 3);

/// Of pulses that end whole, this share is like the one before: what distance they have is no chance. Ours: a
/// third; without it receivers and middles agree more, but any slow writer might be meant. For `pulse`.
pub(crate) const WHOLE_ALIKE: Share = Share(1, 3);

/// This share of them may end short, as the rest of a long write. Ours: one of eight. For `pulse`.
pub(crate) const WHOLE_SHORT: Share = Share(1, 8);

/// Nearly all pulses. Ours: three of four. For `beat`, `pulse`.
pub(crate) const NEARLY_ALL: Share = Share(3, 4);

/// Many pulses. Ours: one of four. For `pulse`.
pub(crate) const MANY: Share = Share(1, 4);

/// Transfers end with an idle time longer than this, and than a round trip. Ours: an application that writes as
/// fast as it can (reads a disk, encrypts) pauses for up to some milliseconds. For `sender/sends`.
pub(crate) const IDLE_ENDS_RUN_NS: i64 = 10_000_000;

/// A silence of this share of the longest lately parts two beats. Ours: less than a half, for beats may come one or two
/// writes apart. For `beat`.
pub(crate) const BEAT_SILENCE: Share = Share(2, 5);

/// Fewer beats tell nothing. Ours: not measured. For `beat`.
pub(crate) const ENOUGH_BEATS: u32 = 8;

/// This share of beats comes one unit behind the one before, or a few. Ours: by chance a quarter would. For `beat`.
pub(crate) const EVEN_BEATS: Share = Share(7, 8);

/// So far from a whole number of units, as a share of one, may be one. Ours: an eighth. For `beat`.
pub(crate) const OFF_BEAT: Share = Share(1, 8);

/// More units than this are silence. Ours: not measured. For `beat`.
pub(crate) const MOST_UNITS: i64 = 3;

/// A pace lets out two segments at a time, or what its rate moves in a millisecond, or in four behind a wireless
/// driver (Linux v6.1 `tcp_tso_autosize`, `sk_pacing_shift_update` 8 in `mac80211`). For `beat`.
pub(crate) const PACED_NS: i64 = 4_000_000;

/// More than two segments, as it lets out at least (Linux v6.1 `tcp_min_tso_segs`). Ours: and a half. For `beat`.
pub(crate) const LARGE_BEAT: Share = Share(5, 2);

/// Less than two. Ours: by a quarter. For `beat`.
pub(crate) const SMALL_BEAT: Share = Share(7, 4);

/// On ways shorter than this it lets out more at once (Linux v6.1 `tcp_tso_autosize`, `tcp_tso_rtt_log` 9: above eight
/// times 512 us less than 256 bytes). For `beat`.
pub(crate) const SMALL_QUANTUM_TRIP_NS: i64 = 4_096_000;

/// Rates up to the next beat are one within this share. Ours: a fifth. For `beat`.
pub(crate) const SAME_RATE: Share = Share(1, 5);

/// This many beats of another rate kept time. Ours: a lone beat of another size makes two. For `beat`.
pub(crate) const ODD_BEATS: u32 = 4;

/// And of those that a window stopped, or a silence followed, there are no more than this share of them: by chance
/// there would be three times as many. Ours: not measured. For `beat`.
pub(crate) const STOPPED_BEATS: Share = Share(1, 4);

/// As many beats end short where a program has nothing left. Ours: one of sixteen. For `beat`.
pub(crate) const DRAINED: Share = Share(1, 16);

/// And the next comes no later than elsewhere, else a pace may have let out a long write. Ours: by half. For `beat`.
pub(crate) const DRAINED_LATE: Share = Share(3, 2);
