package intern

import "slices"

// Recent are the last values that differ, of which an equal one is shared instead of keeping another one.
type Recent[T any] []T

// Share returns the newest value that is equal. If there is none, it creates one, and adds it. Only the newest ones are kept, at most as
// many as limit.
func (r *Recent[T]) Share(limit int, equal func(known T) bool, create func() T) T {
	for _, known := range slices.Backward(*r) {
		if equal(known) {
			return known
		}
	}
	value := create()
	*r = append(slices.Delete(*r, 0, max(0, len(*r)+1-limit)), value)
	return value
}
