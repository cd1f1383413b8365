package reconciler

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/history"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/occurrence"
)

// An Order is what a user asks the loop to do.
type Order struct {
	// Subject is crp/NAME, rp/NAMESPACE/NAME, cluster/NAME, or KIND/NAME for an object of the Namespace; Cluster is
	// empty for every cluster.
	Subject   string `json:"subject"`
	Namespace string `json:"namespace,omitempty"`
	Cluster   string `json:"cluster,omitempty"`
	// Stopped asks Resume to resume a stopped rollout.
	Stopped bool `json:"stopped,omitempty"`
	// FailedContent asks Resume to let content run again that failed in an update run or was rejected.
	FailedContent bool `json:"failedContent,omitempty"`
	// Stage is the stage that Approve approves. Before and After say which of its tasks; the one that waits if neither is set.
	Stage  string `json:"stage,omitempty"`
	Before bool   `json:"before,omitempty"`
	After  bool   `json:"after,omitempty"`
	// Run is the update run that is meant; the one that is under way if it is empty. Reject makes Approve reject the stage, and
	// Code is the reason of the condition that a Kubernetes client writes.
	Run    string `json:"run,omitempty"`
	Reject bool   `json:"reject,omitempty"`
	Code   string `json:"code,omitempty"`
	// Name is the name of the eviction; a new one if it is empty.
	Name string `json:"name,omitempty"`
	// Overrun makes a freeze let rollouts finish that have begun.
	Overrun bool `json:"overrun,omitempty"`
	// Reason is the reason of a suspension, or of resuming a stopped rollout. A suspension ends after For or at Until,
	// if one of them is set.
	Reason string          `json:"reason,omitempty"`
	For    metav1.Duration `json:"for,omitzero"`
	Until  time.Time       `json:"until,omitzero"`
	// By is the user.
	By string `json:"by,omitempty"`
}

// An OrderError says why an order is invalid or impossible, and what to request instead.
type OrderError struct{ Why string }

func (e *OrderError) Error() string { return e.Why }

func refuse(format string, args ...any) error { return &OrderError{fmt.Sprintf(format, args...)} }

// A queuedOrder is an order in the loop's queue.
type queuedOrder struct {
	Order
	// do carries the order out in the ledger, and returns the answer.
	do     func(*orderRun, Order) (answer string, err error)
	answer answer
	done   chan answer // capacity one
}

// An answer is the result of an order.
type answer struct {
	text string
	err  error
}

// An orderRun carries out the orders of one turn.
type orderRun struct {
	now    time.Time
	ledger *ledger.Ledger
	agents *agents
	// inForce is the commit in force; nil if none is yet. newestCrashed says that the newest one has crashed the process.
	inForce       *hub.Snapshot
	newestCrashed bool
	// works are the works that were last sent to clusters. unanswered is the number of clusters for which a placement
	// leaves room, because they have not answered since the ledger was lost.
	works      map[string][]*work.Work
	unanswered map[api.PlacementKey]int
	// approvalsInGit says that stages of update runs are approved by commits only.
	approvalsInGit bool

	// actions are the actions of users. loadNewest says that the newest commit is to be loaded again.
	actions    []occurrence.Occurrence
	loadNewest bool
}

// carryOut carries out an order, and records the suspensions that it begins or ends.
func (r *orderRun) carryOut(o Order, do func(*orderRun, Order) (string, error)) (answer string, err error) {
	was := r.ledger.Suspensions()
	answer, err = do(r, o)
	r.actions = append(r.actions, occurrence.OfSuspensions(was, r.ledger.Suspensions(), o.By, r.now)...)
	return answer, err
}

// record records another action of a user, which is published once the ledger is saved.
func (r *orderRun) record(event history.Event, s ledger.Subject, by, message string) {
	r.actions = append(r.actions, occurrence.UserAction(event, s, by, message))
}

const longestText = 500

// plainText reports whether a text can be shown on one line.
func plainText(s string) bool {
	return len(s) <= longestText && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}
