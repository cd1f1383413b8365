package proposal

import (
	"errors"

	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/gitsource/remote"
)

// isGeneral reports whether every request to the forge or the Git server is likely to fail in
// the same way. Other errors are about one pull request or one branch.
func isGeneral(err error) bool {
	_, remote := errors.AsType[*remote.HTTPError](err)
	return remote || forge.IsGeneral(err)
}
