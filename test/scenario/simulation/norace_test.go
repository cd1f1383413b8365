//go:build !race

package simulation

// step is the difference of two seeds: every life is run.
const step = 1
