package proposal

import (
	"errors"

	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/gitsource/remote"
)

// isGeneral reports whether an error is likely to be met by every request, of the forge or
// of the Git server. Others are about one pull request or one branch.
func isGeneral(err error) bool {
	_, remote := errors.AsType[*remote.HTTPError](err)
	return remote || forge.IsGeneral(err)
}
