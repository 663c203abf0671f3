# Writes a header that changes with the contents of a file, for sources that embed it in a way that a compiler cache does not
# see: cmake -DFILE=... -DOUTPUT=... -P WriteHash.cmake
file(SHA256 "${FILE}" hash)
file(WRITE "${OUTPUT}" "[[maybe_unused]] static constexpr char embedded_hash[] = \"${hash}\";\n")
