package forge

import (
	"context"
	"crypto/sha1"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"code.gitea.io/sdk/gitea"
)

// A Commit changes one file on a new branch.
type Commit struct {
	// Base is the branch it follows, Branch the one that is made.
	Base, Branch string
	// Path is the file, Before all that is expected there, and After the new text.
	Path          string
	Before, After []byte
	Message       string
}

// ErrStale is returned where the file is not as expected.
var ErrStale = errors.New("the file has changed on the branch since")

// blobID is the name that Git gives to the content of a file.
func blobID(content []byte) string {
	h := sha1.New()
	fmt.Fprintf(h, "blob %d\x00", len(content))
	h.Write(content)
	return hex.EncodeToString(h.Sum(nil))
}

func (g *giteaClient) Commit(ctx context.Context, commit Commit) error {
	c, err := g.api(ctx)
	if err != nil {
		return err
	}
	_, _, err = c.UpdateFile(g.owner, g.name, commit.Path, gitea.UpdateFileOptions{
		FileOptions: gitea.FileOptions{
			Message: commit.Message, BranchName: commit.Base, NewBranchName: commit.Branch,
			Author: gitea.Identity{Name: author, Email: email}, Committer: gitea.Identity{Name: author, Email: email},
		},
		SHA: blobID(commit.Before), Content: base64.StdEncoding.EncodeToString(commit.After),
	})
	switch answer, _ := errors.AsType[*StatusError](err); {
	case err == nil:
		return nil
	case answer != nil && answer.Status/100 == 4 && strings.Contains(answer.Message, "sha does not match"):
		return ErrStale
	default:
		return fmt.Errorf("commit to branch %s: %w", commit.Branch, err)
	}
}

// Who makes the commits.
const author, email = "gitfleet", "gitfleet@noreply.invalid"
