// Package gzipped compresses what is stored in API servers: inventories, the shared ledger and the newest history.
package gzipped

import (
	"bytes"
	"compress/gzip"
	"io"
	"sync"
)

// writers is a pool, since each writer allocates about 1 MB and the ledger is saved after every
// change. They use the fastest level, since hashes, which are most of the content, compress
// badly at any level.
var writers = sync.Pool{New: func() any {
	w, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		panic("gzipped: " + err.Error()) // the level is valid
	}
	return w
}}

// Encode returns the output of write, compressed. Equal output gives equal bytes. It fails only if
// write fails.
func Encode(write func(io.Writer) error) ([]byte, error) {
	var out bytes.Buffer
	zip := writers.Get().(*gzip.Writer)
	defer writers.Put(zip)
	zip.Reset(&out)
	if err := write(zip); err != nil {
		return nil, err
	}
	err := zip.Close()
	return out.Bytes(), err
}
