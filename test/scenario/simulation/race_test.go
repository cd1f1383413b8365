//go:build race

package simulation

// step leads every fifth life only.
const step = 5
