package probe

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/observed"
	"github.com/gitfleet/gitfleet/reconciler/member/retry"
)

// The resource versions of one resource only grow, unless the data of the cluster is replaced by an
// earlier copy. A list without a resourceVersion is as new as the last write, whichever API server
// answers, so that a lower version than one that was seen before shows a restore. The namespaces are
// compared, which are read anyway to observe the cluster.

// currentVersion reads the resource version of the namespaces; zero if it is not a number.
func (pr *Prober) currentVersion(ctx context.Context) (uint64, error) {
	raw, err := connection.Answer(pr.conn.REST().Get().AbsPath("api/v1/namespaces").SetHeader("Accept", acceptMetadataList).Param("limit", "1").Do(ctx))
	if err != nil {
		return 0, fmt.Errorf("read the resource version: %w", err)
	}
	var list struct{ Metadata metav1.ListMeta }
	if err := json.Unmarshal(raw, &list); err != nil {
		return 0, fmt.Errorf("read the resource version: %w", err)
	}
	return observed.ParseVersion(list.Metadata.ResourceVersion), nil
}

// A lower version is confirmed by more requests: a proxy with a cache may answer instead of the API
// server, or one of several API servers may not read from the quorum as it should.
const (
	confirmations = 2
	confirmAfter  = time.Second
)

// compareVersions sets Restored if the version in a result is lower than one that was known before of
// the same cluster. If the other requests do not confirm it, the known version stays.
func (pr *Prober) compareVersions(ctx context.Context, p *Result) {
	known := pr.version
	switch {
	case p.Version == 0:
		return
	case p.Version >= known, p.UID != "" && pr.uid != "" && p.UID != pr.uid:
		pr.version = p.Version
		return
	}
	for range confirmations {
		retry.Sleep(ctx, confirmAfter)
		again, err := pr.currentVersion(ctx)
		if err != nil || again == 0 || again >= known {
			p.Version = 0
			pr.restoreSuspected.Store(true)
			return
		}
	}
	pr.version = p.Version
	p.Restored = fmt.Sprintf("the cluster was restored to an earlier state (its resource version is %d, and was %d)", p.Version, known)
}
