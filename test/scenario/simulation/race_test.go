//go:build race

package simulation

// step is the difference of two seeds: every tenth scenario is run.
const step = 10
