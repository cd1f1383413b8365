package ledger

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// Remedy is what to do about a damaged ledger.
const Remedy = "gitfleet state reset moves it aside, and with the setting resetDamagedState the daemon does so at its start; " +
	"it is then rebuilt from Git and the members, without suspensions and events"

// A DamagedError says that a ledger is damaged: the file of a directory, or the objects of a Shared
// store. What an error of the file system or of the API server hides is not damage.
type DamagedError struct {
	// What is damaged, and Why it counts as damaged.
	What, Why string
}

func (e *DamagedError) Error() string { return e.Damage() + ": " + Remedy }

// Damage is the error without the remedy.
func (e *DamagedError) Damage() string { return e.What + " is damaged (" + e.Why + ")" }

// IsDamaged reports whether an error is that of a damaged ledger.
func IsDamaged(err error) bool {
	_, is := errors.AsType[*DamagedError](err)
	return is
}

func damaged(format string, args ...any) error {
	return &DamagedError{"the file", fmt.Sprintf(format, args...)}
}

func damagedShared(why string) error {
	return &DamagedError{"the ledger in the management cluster", why}
}

// schema is the version of the stored records. It is increased when records change in a way
// that an older gitfleet would misread or lose. No other version was ever released.
const schema = 5

// A SchemaError says that a ledger was written by a version of gitfleet whose records this one does
// not read. Such a ledger is not damaged.
type SchemaError struct {
	have int
	// unknown says that the schema is known, but a record is not.
	unknown bool
}

func (e *SchemaError) Error() string {
	switch {
	case e.unknown:
		return "it has a record of an unknown kind, and was probably written by a newer gitfleet: run that version"
	case e.have > schema:
		return fmt.Sprintf("it was written by a newer gitfleet (schema %d, this one knows %d): run that version", e.have, schema)
	}
	return fmt.Sprintf("it was written by a gitfleet that was never released (schema %d, this one knows %d)", e.have, schema)
}

// checkSchema returns a SchemaError for records of another version.
func checkSchema(have int) error {
	if have != schema {
		return &SchemaError{have: have}
	}
	return nil
}

// ofAnotherVersion reports whether an error is a SchemaError. Records that cannot be decoded for any other reason, although their
// checksum is right, are damaged.
func ofAnotherVersion(err error) bool {
	_, is := errors.AsType[*SchemaError](err)
	return is
}

// ofFileSystem reports whether an error is one of the operating system, as on a full or read-only file
// system, which says nothing about the content of the file.
func ofFileSystem(err error) bool {
	_, ok := errors.AsType[*fs.PathError](err)
	_, errno := errors.AsType[syscall.Errno](err)
	return ok || errno
}

// faultOf returns the error for a panic or a memory fault in the library: that of the file system if
// the file cannot be read, since a mapped page that the disk does not return is a memory fault too.
func faultOf(path string, fault any) error {
	if _, err := os.ReadFile(path); err != nil {
		return err
	}
	return damaged("%v", fault)
}
