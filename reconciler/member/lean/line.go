package lean

import "net"

// A line is the connection to the server, below TLS. Who reads from TLS is deep in
// calls, and a goroutine that waits there keeps a stack as deep, of each of
// thousands of connections. So nobody waits there for the next frame: whoever
// reads is told that there is nothing, and the wait is at the line.
//
// One goroutine reads at a time.
type line struct {
	net.Conn
	between bool    // two frames: what is not there is not waited for
	come    bool    // first has come and was not read
	first   [1]byte // of what comes next
	err     error   // why nothing more will come

	// largest is the most that was ever asked for at once: TLS has a buffer as
	// large. secured is what it was when both sides had agreed.
	largest, secured int
}

// hasGrown reports whether TLS has a large buffer that was not there from the
// beginning. Who reads may ask.
func (l *line) hasGrown() bool { return l.largest > max(mostKept, l.secured) }

// await waits until something has come, or nothing more will.
func (l *line) await() {
	for !l.come && l.err == nil {
		var n int
		n, l.err = l.Conn.Read(l.first[:])
		l.come = n > 0
	}
}

// Read implements io.Reader.
func (l *line) Read(p []byte) (int, error) {
	l.largest = max(l.largest, len(p))
	switch {
	case len(p) == 0:
		return 0, nil
	case l.come:
		l.come, l.between = false, false // the rest of it is on its way
		p[0] = l.first[0]
		return 1, nil
	case l.err != nil:
		return 0, l.err
	case l.between:
		return 0, errNothing
	}
	return l.Conn.Read(p)
}

// errNothing says that nothing has come yet.
var errNothing net.Error = nothing{}

type nothing struct{}

func (nothing) Error() string { return "nothing has come yet" }

// Timeout implements net.Error.
func (nothing) Timeout() bool { return true }

// Temporary implements net.Error: TLS goes on afterwards.
func (nothing) Temporary() bool { return true }
