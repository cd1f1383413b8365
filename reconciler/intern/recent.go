package intern

import "slices"

// Recent are the last values that differ, of which an equal one is shared instead of keeping another one.
type Recent[T any] []T

// Share returns the newest value that is equal. If there is none, it makes one, and adds it in place of the oldest of most values.
func (r *Recent[T]) Share(most int, equal func(known T) bool, make func() T) T {
	for _, known := range slices.Backward(*r) {
		if equal(known) {
			return known
		}
	}
	value := make()
	*r = append(slices.Delete(*r, 0, max(0, len(*r)+1-most)), value)
	return value
}
