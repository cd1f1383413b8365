//go:build race

package simulation

// step is the difference of two seeds: every fifth life is run.
const step = 5
