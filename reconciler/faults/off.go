//go:build !faults

// Package faults marks the positions at which tests can kill the program. They exist only with
// the build tag faults, and so not in a released binary.
package faults

// At marks a position between two writes. Without the build tag it does nothing.
func At(string) {}
