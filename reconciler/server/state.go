package server

import (
	"io"
	"net/http"
)

// State answers with a backup of what the daemon knows. export writes it; any
// goroutine may call it.
func State(export func(io.Writer) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/jsonl")
		out := &begun{ResponseWriter: w}
		switch err := export(out); {
		case err == nil:
		case out.any:
			panic(http.ErrAbortHandler) // half an answer must not look like a whole one
		default:
			http.Error(w, "the state cannot be read: "+err.Error(), http.StatusInternalServerError)
		}
	})
}

// begun knows whether anything was written.
type begun struct {
	http.ResponseWriter
	any bool
}

func (b *begun) Write(p []byte) (int, error) {
	b.any = true
	return b.ResponseWriter.Write(p)
}
