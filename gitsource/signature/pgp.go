package signature

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
)

func (k *Keys) verifyPGP(payload, sig []byte, now time.Time) (Signer, error) {
	config := &packet.Config{Time: func() time.Time { return now }}
	entity, err := openpgp.CheckArmoredDetachedSignature(k.pgp, bytes.NewReader(payload), bytes.NewReader(sig), config)
	if err != nil {
		return Signer{}, fmt.Errorf("OpenPGP signature: %w", err)
	}
	s := Signer{Key: strings.ToUpper(hex.EncodeToString(entity.PrimaryKey.Fingerprint))}
	for _, id := range entity.Identities {
		// The owner of the key has chosen the address, so that it must not be used as a
		// pattern.
		if id.UserId != nil && id.UserId.Email != "" && len(id.Revocations) == 0 && !strings.ContainsAny(id.UserId.Email, "*?!,") {
			s.names = append(s.names, id.UserId.Email)
		}
	}
	return sorted(s), nil
}
