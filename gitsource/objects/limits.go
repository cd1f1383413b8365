package objects

// Limits limit what a pack may cost.
type Limits struct {
	// Objects is the maximum number of its objects.
	Objects int
	// ObjectBytes is the maximum size of an object that is rebuilt from a delta.
	ObjectBytes int64
}

const (
	kib = 1 << 10
	mib = 1 << 20
)
