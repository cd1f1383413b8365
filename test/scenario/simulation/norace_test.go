//go:build !race

package simulation

// step leads every life.
const step = 1
