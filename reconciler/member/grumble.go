package member

import (
	"errors"
	"net"
	"time"
)

// seldom is how often it is said again in a log that something is still wrong.
const seldom = time.Hour

// A grumble is what a log was last told of something that is tried again and
// again: it is told when that begins, when it is another, and then seldom.
type grumble struct {
	what string
	at   time.Time
}

// due reports whether the log is to be told, and takes it for told.
func (g *grumble) due(what string) bool {
	now := time.Now()
	if g.what == what && now.Sub(g.at) < seldom {
		return false
	}
	*g = grumble{what, now}
	return true
}

// gist is an error without what is another each time: the port that we happened to
// ask from.
func gist(err error) string {
	var of *net.OpError
	if errors.As(err, &of) && of.Addr != nil {
		return of.Op + " " + of.Addr.String() + ": " + of.Err.Error()
	}
	return err.Error()
}
