package member

import (
	"errors"
	"fmt"
	"net"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

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
