#pragma once
/// What a folder says about using the model: special tokens, template, recommended sampling.

#include "base/result.h"
#include "formats/gguf/metadata.h"
#include "model/huggingface/folder.h"
#include "model/huggingface/tokenizer_file.h"

namespace hearth::model {

/// Writes tokenizer.ggml.*_token_id and the add_*_token keys that tokenizer_config.json overrides.
/// Every end-of-sequence token of config.json and generation_config.json gets a role, unless its
/// text already says that it is an end. Errors: invalid_file for ids outside the vocabulary,
/// unsupported for more ends than GGUF has roles.
Result<void> set_special_tokens(const FolderFiles& files, const FolderTokenizer& tokenizer,
                                formats::Metadata& metadata);

/// Writes tokenizer.chat_template, and those with a name. Errors: invalid_file.
Result<void> set_chat_templates(const FolderFiles& files, formats::Metadata& metadata);

/// Writes general.sampling.* from generation_config.json. Errors: invalid_file.
Result<void> set_recommended_sampling(const FolderFiles& files, formats::Metadata& metadata);

}  // namespace hearth::model
