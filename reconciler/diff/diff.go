// Package diff compares what the hub wants with what a member has, and says
// what to do about it.
//
// Compare is the one engine: an object differs if and only if its list is not
// empty. Decide turns the facts about one object into one operation, by a
// table. The rest is what the two need to know: who owns which field
// (ApplyHash, Who, Contested), what must never be shown (Redact, Secrets), and
// when two writers undo each other (Flips). Everything here is a plain
// function of its arguments and changes none of them.
package diff
