// Package diff compares desired objects with live ones, and decides what to do about the
// difference.
//
// Compare is the only comparison: an object differs if and only if its result is not empty.
// Decide turns the facts about one object into one operation, by a table. Other functions
// provide the facts: field ownership (ApplyHash, Who, Contested), values to mask (Redact,
// Secrets), and writers that undo each other (Flips). All functions are pure and change no
// argument.
package diff
