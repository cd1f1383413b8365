package connection

import "context"

// mediumEvent is the cost from which an event is no longer small, in bytes: less than that of an answer, since many watches may wait
// for the rest of their events.
const mediumEvent = 512 << 10

// An EventSlot lets large events of one watch be read and decoded, one at a time. One goroutine uses it.
type EventSlot struct {
	ctx  context.Context
	slot answerSlot
}

// EventSlot returns the slot of a watch. end ends the watch, and any goroutine may call it.
func (c *Conn) EventSlot(ctx context.Context, end func()) *EventSlot {
	return &EventSlot{ctx, answerSlot{of: c.clients().quota, end: end}}
}

// Grow waits, if need be, before the rest of an event is read, of which some bytes were read.
func (e *EventSlot) Grow(bytes int) error { return e.slot.grow(e.ctx, 2*int64(bytes), mediumEvent) }

// Check waits, if need be, before an event is decoded. It returns an error if the event would decode to too
// much.
func (e *EventSlot) Check(line []byte) error {
	values := valueCounter{most: objectValues}
	if limit := values.count(line); limit != "" {
		return &exceededError{limit, true}
	}
	return e.slot.grow(e.ctx, 2*int64(len(line))+valueBytes*int64(values.values), mediumEvent)
}

// Release gives back what the slot holds: an event was decoded, or the watch ends.
func (e *EventSlot) Release() { e.slot.release() }
