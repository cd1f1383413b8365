package member

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// verdict is what an error is to the server that answered with it, without its
// words: they may be others each time, as where they count. It is empty if no
// server answered.
func verdict(err error) string {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return ""
	}
	status := answer.Status()
	var text strings.Builder
	fmt.Fprint(&text, status.Code, " ", status.Reason)
	if status.Details != nil {
		for _, c := range status.Details.Causes {
			text.WriteString(" " + string(c.Type) + " " + c.Field)
		}
	}
	return text.String()
}
