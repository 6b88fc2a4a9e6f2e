// Averages of the parameters (`[ema]`) in a run: in the place of the parameters, and where a
// checkpoint has other profiles than the job.
#pragma once

#include "runtime/job/Session.h"

namespace titan {

/// Exchanges parameters and buffers with their averages of `profile`, byte for byte: what runs next
/// reads averages, and doing it twice changes nothing. What has no average stays. The errors of the
/// device; BadInput when a parameter is no f32, as its average is.
Status exchangeAverages(StateAccess& access, std::string_view profile);

/// --ema of what only reads: the averages stand in the place of the parameters. `loaded`: of the
/// checkpoint, null: there is none. BadInput when job or checkpoint keeps no such averages, or no
/// update was made that they could begin with.
Status useAverages(Session& session, const std::string& profile,
                   const checkpoint::Manifest* loaded);

/// How `train` loads a checkpoint: --ema-start and --ema-drop say what one side may lack. BadInput:
/// the job keeps no averages that are to start, or it keeps some that are to be dropped.
Result<checkpoint::LoadRequest> requestForTraining(Session& session);
/// How it is loaded to be read: profiles that one side alone has do not matter. `saved`: its
/// manifest, where it can be read.
checkpoint::LoadRequest requestForReading(Session& session,
                                          const std::optional<checkpoint::Manifest>& saved);

/// After a load for training: averages that the checkpoint did not have become the parameters. The
/// record in `loaded.init` says what was started and dropped.
Status startAverages(Session& session, checkpoint::Manifest& loaded);

} // namespace titan
