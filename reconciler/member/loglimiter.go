package member

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// logInterval is the time between two log lines that say the same.
const logInterval = time.Hour

// A logLimiter limits how often the failure of something that is retried is logged: when
// it begins, when it changes, and once in logInterval after that. The zero value has logged
// nothing.
type logLimiter struct {
	what string
	at   time.Time
}

// due reports whether a failure is to be logged now, and remembers it as logged.
func (l *logLimiter) due(what string) bool {
	now := time.Now()
	if l.what == what && now.Sub(l.at) < logInterval {
		return false
	}
	*l = logLimiter{what, now}
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
