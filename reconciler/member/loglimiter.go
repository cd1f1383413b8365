package member

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// logInterval is the time between two log lines about the same failure.
const logInterval = time.Hour

// A logLimiter limits how often a failure that is retried is logged: when it begins, when it
// changes, and every logInterval. The zero value has logged nothing.
type logLimiter struct {
	what string
	at   time.Time
}

// due reports whether a failure is to be logged now, and records it as logged.
func (l *logLimiter) due(what string) bool {
	now := time.Now()
	if l.what == what && now.Sub(l.at) < logInterval {
		return false
	}
	*l = logLimiter{what, now}
	return true
}

// withoutPort returns the text of an error without the local port, which differs each time.
func withoutPort(err error) string {
	var of *net.OpError
	if errors.As(err, &of) && of.Addr != nil {
		return of.Op + " " + of.Addr.String() + ": " + of.Err.Error()
	}
	return err.Error()
}

// refusalReason returns the status reason of the server's answer, whose message may differ each
// time; empty if no server answered.
func refusalReason(err error) string {
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
