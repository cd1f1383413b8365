//go:build !faults

// Package faults has the places where tests kill the program. A released binary
// has none of them: they are only there with the build tag faults.
package faults

// At is a place between two writes. It does nothing.
func At(string) {}
