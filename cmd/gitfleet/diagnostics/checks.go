package diagnostics

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/offline"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/settings"
	"github.com/gitfleet/gitfleet/gitsource/atomicfile"
	"github.com/gitfleet/gitfleet/gitsource/decryption"
	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
)

const (
	// minSpace is the free space that a state directory should have.
	minSpace = 1 << 30
	// certificateNotice is how long before its expiry a certificate is reported.
	certificateNotice = 14 * 24 * time.Hour
)

// checkFiles checks that the files that the configuration names can be read, and that the
// certificates in them are valid.
func checkFiles(c settings.Config) []check {
	var all []check
	const keys = "decryption.keyFile"
	if k := decryption.New(c.DecryptionConfig()); k != nil {
		if err := k.Check(); err != nil {
			all = append(all, check{"config", keys, checkFail, strings.ReplaceAll(err.Error(), "\n", "; "), "give it files with age identities or OpenPGP private keys that the daemon's user can read"})
		}
	}
	for _, named := range slices.Concat(c.Named("File"), c.Named("caBundle")) {
		if named.Key == keys { // it may be a directory
			continue
		}
		content, err := os.ReadFile(named.Name)
		if err != nil {
			all = append(all, check{"config", named.Key, checkFail, err.Error(), "create the file, or let the daemon's user read it"})
		} else if e, ok := connection.CAExpiry(content); ok && (strings.HasSuffix(named.Key, "CAFile") || strings.HasSuffix(named.Key, "caBundle")) {
			all = append(all, expiryChecks("config", named.Key, []connection.Expiry{e}, time.Now())...)
		}
	}
	if c.Server.CertFile == "" || c.Server.KeyFile == "" || slices.ContainsFunc(all, func(c check) bool { return c.State == checkFail }) {
		return all
	}
	pair, err := tls.LoadX509KeyPair(c.Server.CertFile, c.Server.KeyFile)
	if err != nil {
		return append(all, check{"server", c.Server.CertFile, checkFail, err.Error(), "give it a certificate and the key that belongs to it"})
	}
	until := pair.Leaf.NotAfter
	return append(all, expiryChecks("server", c.Server.CertFile, []connection.Expiry{{What: "certificate", Until: until, Due: until.Add(-certificateNotice)}}, time.Now())...)
}

// checkState checks that the state directory can be written and has room.
func checkState(c settings.Config) []check {
	if err := checkWritable(c.StateDir); err != nil {
		fix := fileSystemFix(err)
		if errors.Is(err, os.ErrNotExist) {
			if fix = "create it, owned by the daemon's user"; checkWritable(filepath.Dir(c.StateDir)) == nil {
				return []check{{"state", c.StateDir, checkOK, "does not exist yet; the daemon creates it", ""}}
			}
		}
		return []check{{"state", c.StateDir, checkFail, err.Error(), fix}}
	}
	use := "no daemon uses it"
	switch used, err := ledger.Inspect(filepath.Join(c.StateDir, "ledger")); {
	case err != nil:
		message, fix := ledgerProblem(err)
		return []check{{"state", c.StateDir, checkFail, message, fix}}
	case used:
		use = "a running daemon uses it"
	}
	found := check{"state", c.StateDir, checkOK, "writable; " + use, ""}
	if free, known := freeSpace(c.StateDir); known {
		found.Message += "; " + resource.NewQuantity(free>>20<<20, resource.BinarySI).String() + " free"
		if free < minSpace {
			found.State, found.Fix = checkWarn, "make room: the clone and the history need space"
		}
	}
	return []check{found}
}

// ledgerProblem returns what is wrong with a ledger that cannot be read, and what to do about it.
func ledgerProblem(err error) (message, fix string) {
	if damaged, ok := errors.AsType[*ledger.DamagedError](err); ok {
		return damaged.Damage(), ledger.Remedy
	}
	if _, ok := errors.AsType[*ledger.SchemaError](err); ok {
		return err.Error(), "run the version that wrote it; the ledger is not damaged"
	}
	return err.Error(), "mend the file system or its permissions, and leave the ledger where it is: it may be whole"
}

// fileSystemFix is what to do about an error of writing to the state directory.
func fileSystemFix(err error) string {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return "make room: the daemon cannot write its ledger"
	case errors.Is(err, syscall.EROFS):
		return "mount the file system writable"
	case errors.Is(err, syscall.EIO):
		return "check the disk"
	}
	return "let the daemon's user write it"
}

// checkWritable writes a file to a directory and removes it. It is written to the disk, since a full
// one still lets empty files be created.
func checkWritable(dir string) error {
	f, err := os.CreateTemp(dir, ".gitfleet-doctor-")
	if err != nil {
		return atomicfile.NotCreated(err, dir)
	}
	_, err = f.Write(make([]byte, 64<<10))
	return atomicfile.About(errors.Join(err, f.Sync(), f.Close(), os.Remove(f.Name())), f.Name(), dir)
}

// checkRepository reads the newest commit into a temporary clone. The snapshot is nil if it
// cannot be read or does not load.
func checkRepository(ctx context.Context, c settings.Config) (*hub.Snapshot, check) {
	found := check{Check: "repository", State: checkFail}
	s, refused, err := offline.NewestCommit(ctx, c, "")
	var bad *hub.LoadError
	switch {
	case errors.As(err, &bad):
		found.Message = fmt.Sprintf("the newest commit does not load: %s, such as %s", output.Count(len(bad.Problems), "problem"), bad.Problems[0].Error())
		found.Fix = "correct the commit; gitfleet validate lists all problems"
		return nil, found
	case err != nil:
		found.Message, found.Fix = err.Error(), "check source.url and the credentials of the repository"
		return nil, found
	case refused != "":
		found.Message, found.Fix = refused, "have the commit signed with an accepted key"
		return s, found
	}
	found.State = checkOK
	found.Message = fmt.Sprintf("commit %s: %s, %s, %s", output.ShortHash(s.Commit.Hash), output.Count(len(s.Objects), "object"), output.Count(len(s.Placements), "placement"), output.Count(len(s.Clusters), "member"))
	return s, found
}

// checkDecryption checks that the configured keys decrypt what is encrypted in a commit; it returns nothing if they do.
func checkDecryption(s *hub.Snapshot) []check {
	var encrypted problem.List
	for _, w := range s.Warnings {
		if w.Undecrypted {
			encrypted = append(encrypted, w)
		}
	}
	if len(encrypted) == 0 {
		return nil
	}
	message := fmt.Sprintf("what is encrypted in the newest commit cannot be decrypted: %s, such as %s", output.Count(len(encrypted), "problem"), encrypted[0].Error())
	return []check{{"repository", "", checkFail, message, "set decryption.keyFile, decryption.keyEnv or decryption.service to the keys of the recipients; gitfleet validate --config lists all problems"}}
}

// tokenPage is where the documentation has the permissions of a token.
const tokenPage = "docs/drift-pull-requests.md has the permissions that it needs"

// checkForge checks that the forge accepts the token, and that it may do what the daemon does
// there, as far as the forge says so.
func checkForge(ctx context.Context, c settings.Config) []check {
	if !c.AsksForge() && !c.PullRequests.Enabled() {
		return nil
	}
	cfg := c.ForgeConfig()
	fail := func(message, fix string) []check {
		return []check{{"forge", cfg.Repository, checkFail, message, fix}}
	}
	client, err := forge.New(cfg)
	if err != nil {
		return fail(err.Error(), "correct the settings of forge")
	}
	access, err := client.Access(ctx)
	if err != nil {
		return fail(err.Error(), forgeFix(err))
	}
	var all []check
	for _, limit := range []struct {
		found        bool
		state        string
		message, fix string
	}{
		{access.Archived, checkFail, "the repository is archived: nothing can be written to it", "unarchive it, or set forge.repository to the one that is used"},
		{access.ReadOnly, checkFail, "the user " + access.User + " may only read the repository: branches cannot be pushed, nor pull requests opened or statuses set", "let the user write to the repository; " + tokenPage},
		{access.MissingScope != "", checkFail, "the token of " + access.User + " lacks the scope " + access.MissingScope, "make a token with this scope and replace the old one; " + tokenPage},
		{access.NoPullRequests, checkFail, "the repository has no pull requests", "switch them on in the settings of the repository"},
		{access.NoIssues && c.AsksForge(), checkWarn, "the repository has no issues: changes that no edit of the files makes are put back and not offered", "switch them on in the settings of the repository"},
	} {
		if limit.found {
			all = append(all, check{"forge", cfg.Repository, limit.state, limit.message, limit.fix})
		}
	}
	if len(all) == 0 {
		message := "the token of " + access.User + " is accepted, and the user may write to the repository"
		if access.PermissionsHidden {
			message += "; it does not administer the repository, so that Gitea does not say who may write to it, and commands in comments are not executed"
		}
		all = append(all, check{"forge", cfg.Repository, checkOK, message, ""})
	}
	return all
}

// forgeFix is what to do about an error of the forge.
func forgeFix(err error) string {
	answer, ok := errors.AsType[*forge.StatusError](err)
	switch {
	case !ok:
		return "check forge.url, its certificate, the network and the file of the token"
	case answer.Status == http.StatusUnauthorized:
		return "make another token and replace the old one; " + tokenPage
	case answer.Status == http.StatusForbidden && answer.RetryAfter == 0:
		return "give the token the missing permission; " + tokenPage
	case answer.Status == http.StatusNotFound:
		return "check forge.repository, and let the user of the token see it"
	case answer.Status/100 == 3:
		return "set forge.url and forge.repository to where the repository is now"
	}
	return "try again later; check that forge.url and forge.type are those of the forge"
}
