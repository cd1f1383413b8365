package objects

// Limits limit a pack.
type Limits struct {
	// Objects is the maximum number of objects in the pack.
	Objects int
	// ObjectBytes is the maximum size of an object that is rebuilt from a delta.
	ObjectBytes int64
	// UnpackedBytes is the maximum size of all objects together, where bases that have to be
	// unpacked again count again. It limits the time that a small pack can take.
	UnpackedBytes int64
}

const (
	kib = 1 << 10
	mib = 1 << 20
)
