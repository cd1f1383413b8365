package server

import (
	"io"
	"net/http"
)

// StateHandler responds with a backup of the ledger. export writes it and may be called concurrently.
func StateHandler(export func(io.Writer) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		respondLines(w, "the state", export)
	})
}

// respondLines responds with the lines of JSON that write writes.
func respondLines(w http.ResponseWriter, what string, write func(io.Writer) error) {
	w.Header().Set("Content-Type", "application/jsonl")
	out := &writeTracker{ResponseWriter: w}
	switch err := write(out); {
	case err == nil:
	case out.any:
		panic(http.ErrAbortHandler) // a partial response must not look complete
	default:
		http.Error(w, what+" cannot be read: "+err.Error(), http.StatusInternalServerError)
	}
}

// A writeTracker records whether anything was written.
type writeTracker struct {
	http.ResponseWriter
	any bool
}

func (b *writeTracker) Write(p []byte) (int, error) {
	b.any = true
	return b.ResponseWriter.Write(p)
}
