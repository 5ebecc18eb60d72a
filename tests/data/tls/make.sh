#!/bin/sh
# Makes the certificates of the tests anew. They are for the tests only: the
# keys are public. The authority's own key is thrown away.
#
#   ca            the authority
#   server        localhost, 127.0.0.1, llm.test
#   other-name    other.test only
#   expired       ended in 2021
#   future        begins in 2120
#   self-signed   as `openssl req -x509` makes it: an authority's certificate
set -eu
cd "$(dirname "$0")"
work=$(mktemp -d)
cat >"$work/config" <<END
[ca]
default_ca = tests
[tests]
database = $work/index
new_certs_dir = $work
default_md = sha256
policy = policy
unique_subject = no
rand_serial = yes
[policy]
commonName = supplied
END

# NAME FROM TO EXTENSIONS SIGNER...; `openssl ca`, as it takes dates in every version.
certificate() {
    name=$1 from=$2 to=$3 extensions=$4
    shift 4
    : >"$work/index"
    printf '%b\n' "$extensions" >"$work/extensions"
    openssl ecparam -name prime256v1 -genkey -noout |
        openssl pkcs8 -topk8 -nocrypt -out "$name.key"
    openssl req -new -key "$name.key" -subj "/CN=$name of the tests" -out "$work/request"
    openssl ca -batch -notext -config "$work/config" -in "$work/request" -extfile "$work/extensions" \
        -startdate "$from" -enddate "$to" -out "$name.pem" "$@"
}

begin=20200101000000Z end=21200101000000Z
names=subjectAltName=DNS:localhost,DNS:llm.test,IP:127.0.0.1
leaf=basicConstraints=CA:FALSE\\nextendedKeyUsage=serverAuth\\n

certificate ca $begin $end 'basicConstraints=critical,CA:TRUE\nkeyUsage=keyCertSign' \
    -selfsign -keyfile ca.key
certificate self-signed $begin $end "basicConstraints=critical,CA:TRUE\\n$names" \
    -selfsign -keyfile self-signed.key
certificate server $begin $end "$leaf$names" -cert ca.pem -keyfile ca.key
certificate other-name $begin $end "${leaf}subjectAltName=DNS:other.test" -cert ca.pem -keyfile ca.key
certificate expired $begin 20210101000000Z "$leaf$names" -cert ca.pem -keyfile ca.key
certificate future $end 21210101000000Z "$leaf$names" -cert ca.pem -keyfile ca.key
rm -r "$work" ca.key
