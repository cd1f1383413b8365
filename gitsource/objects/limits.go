package objects

// Limits limit a pack.
type Limits struct {
	// Objects is the maximum number of objects in the pack.
	Objects int
	// ObjectBytes is the maximum size of an object that is rebuilt from a delta.
	ObjectBytes int64
}

const (
	kib = 1 << 10
	mib = 1 << 20
)
