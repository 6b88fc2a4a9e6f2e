// main of a job whose device has no window and is late: linked in place of Entry.cpp where
// titan-compile takes its libraries from lib/titan-late (TITAN_LIBRARY_DIR).
#include "runtime/device/testing/LateDevice.h"
#include "runtime/job/JobMain.h"

namespace {

titan::Result<titan::ChosenDevice> chooseLateDevice(const titan::DeviceRequest& request) {
  titan::ChosenDevice chosen = TITAN_TRY(titan::chooseDevice(request));
  chosen.device = std::make_unique<titan::testing::LateDevice>(std::move(chosen.device));
  return chosen;
}

} // namespace

int main(int argc, char** argv) { return titan::jobMain(argc, argv, chooseLateDevice); }
