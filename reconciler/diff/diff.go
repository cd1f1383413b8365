// Package diff compares desired objects with live ones, and decides what to do about the
// differences.
//
// Compare is the only comparison: an object differs if and only if its result is not empty.
// Decide looks up the operation for the known facts about one object in a table. Other
// functions provide the facts: field ownership (ApplyHash, Who, Contested), values to mask
// (Redact, Secrets), and writers that undo each other's changes (Flips). All functions are pure
// and change no argument.
package diff
