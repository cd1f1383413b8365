package document

import "sync/atomic"

// A Budget limits the memory for the decoded objects of a commit, or for the files of a build.
// Files that are decoded concurrently share one budget. Decoding stops when it is used up.
type Budget struct {
	// Limit is in bytes.
	Limit int64
	used  atomic.Int64
}

// Charge adds bytes to the used memory, and reports whether the limit is still kept.
func (b *Budget) Charge(bytes int64) bool { return b.used.Add(bytes) <= b.Limit }

// Exceeded reports whether more memory was used than the limit.
func (b *Budget) Exceeded() bool { return b.used.Load() > b.Limit }

// The approximate memory of decoded values.
const (
	objectBytes = 1 << 10 // an object without its fields: its ID, origin and hash
	valueBytes  = 16
	mapBytes    = 320 // a map of up to eight entries
	entryBytes  = 64  // each entry of a larger one
	// chargeEvery is the number of bytes that a Decoder decodes between two charges.
	chargeEvery = 64 << 10
)

// count counts decoded bytes, and stops the decoder once the budget is used up.
func (d *Decoder) count(bytes int) {
	d.Size += int64(bytes)
	if d.Size-d.charged >= chargeEvery {
		d.charge()
	}
}

// charge charges the bytes since the last charge.
func (d *Decoder) charge() {
	due := d.Size - d.charged
	d.charged = d.Size
	if d.Budget != nil && !d.Budget.Charge(due) {
		d.gaveUp, d.Cut = true, true
	}
}
